import copy
import pickle

from hubbub import errors


def test_errors_survive_the_trip_between_processes() -> None:
    for error in (
        errors.ParameterError("epsilon", -1, "must be > 0", "be positive"),
        errors.ParameterTypeError("epsilon", "x", "must be a number"),
        errors.MissingExtra("plots"),
        errors.DataTypeError("not that"),
    ):
        for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(other) is type(error)
            assert str(other) == str(error)
            assert vars(other) == vars(error)


def test_every_error_has_one_root() -> None:
    for thing in vars(errors).values():
        if isinstance(thing, type):
            assert issubclass(thing, errors.HubbubError)

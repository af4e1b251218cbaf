CREATE TABLE meta (
	name TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO meta VALUES('version','1');
CREATE TABLE accounts (
	name TEXT NOT NULL,
	role TEXT NOT NULL,
	token TEXT,
	expires TEXT,
	PRIMARY KEY (name),
	UNIQUE (token)
);
CREATE TABLE datasets (
	name TEXT NOT NULL,
	neighbours TEXT NOT NULL,
	filter JSON NOT NULL,
	length INTEGER NOT NULL,
	head TEXT NOT NULL,
	PRIMARY KEY (name)
);
INSERT INTO datasets VALUES('survey','add-remove','{"epsilon": "1", "delta": "0", "sum_epsilon": "1/5", "sum_delta": "0", "sum_renyi": "inf", "order": "0x1.0000000000000p+1", "count": "2"}',2,'5d15aeba557d0e30e69f5163e805ea4fb389767e83f323ccfbd33967bf0d44cb');
INSERT INTO datasets VALUES('empty','add-remove','{"epsilon": "3", "delta": "1/1000000", "sum_epsilon": "0", "sum_delta": "0", "sum_renyi": "0x0.0p+0", "order": "0x1.32cc3cb4ffbfap+3", "count": "0"}',0,'3d21591fd38aeb92873d6cc981fae3e78bab84433caf391e8e32a3eade64af49');
CREATE TABLE caps (
	dataset TEXT NOT NULL,
	analyst TEXT NOT NULL,
	filter JSON NOT NULL,
	PRIMARY KEY (dataset, analyst),
	FOREIGN KEY(dataset) REFERENCES datasets (name)
);
INSERT INTO caps VALUES('survey','ada','{"epsilon": "1/2", "delta": "0", "sum_epsilon": "1/5", "sum_delta": "0", "sum_renyi": "inf", "order": "0x1.0000000000000p+1", "count": "2"}');
CREATE TABLE entries (
	dataset TEXT NOT NULL,
	number INTEGER NOT NULL,
	analyst TEXT NOT NULL,
	"key" TEXT NOT NULL,
	question TEXT NOT NULL,
	loss TEXT NOT NULL,
	delta TEXT NOT NULL,
	at TEXT NOT NULL,
	"before" TEXT NOT NULL,
	digest TEXT NOT NULL,
	PRIMARY KEY (dataset, number),
	UNIQUE (dataset, analyst, "key"),
	FOREIGN KEY(dataset) REFERENCES datasets (name)
);
INSERT INTO entries VALUES('survey',1,'ada','k1','how many?','{"epsilon": 0.1, "loss": "pure", "neighbours": "add-remove"}','0','2026-11-16T18:12:09+00:00','32b66653f476433ecf3d383dfc708e0aed6b55faf3250cad66221aba58055929','5edf6ae7cae2523e12af4bd17e12a1f2da7036fde736412e9585e25732eda6ac');
INSERT INTO entries VALUES('survey',2,'ada','k2','how old?','{"epsilon": 0.1, "loss": "pure", "neighbours": "add-remove"}','0','2026-11-16T18:12:09+00:00','5edf6ae7cae2523e12af4bd17e12a1f2da7036fde736412e9585e25732eda6ac','5d15aeba557d0e30e69f5163e805ea4fb389767e83f323ccfbd33967bf0d44cb');
CREATE TABLE answers (
	dataset TEXT NOT NULL,
	number INTEGER NOT NULL,
	body TEXT NOT NULL,
	PRIMARY KEY (dataset, number),
	FOREIGN KEY(dataset, number) REFERENCES entries (dataset, number)
);
INSERT INTO answers VALUES('survey',1,'42');
CREATE TABLE grants (
	analyst TEXT NOT NULL,
	dataset TEXT NOT NULL,
	PRIMARY KEY (analyst, dataset),
	FOREIGN KEY(analyst) REFERENCES accounts (name),
	FOREIGN KEY(dataset) REFERENCES datasets (name)
);
CREATE INDEX entries_by_question ON entries (dataset, question);

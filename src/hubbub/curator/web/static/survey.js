// The respondent's page: answers are randomised here, shown, and only then sent. Coins are thrown once, when the page
// opens, so looking again does not throw again; answers and coins are kept nowhere and end with the page.

import { decimal, report, secureName, throwCoins } from "./response.js";

const survey = document.getElementById("survey");
const questions = [...survey.querySelectorAll("fieldset[data-epsilon]")];
const coins = questions.map((q) => throwCoins(decimal(q.dataset.epsilon), Number(q.dataset.categories)));
const submission = secureName();
const review = document.getElementById("review");
const preview = document.getElementById("preview");
const rows = document.getElementById("preview-rows");
const send = document.getElementById("send");
const change = document.getElementById("change");
const missing = document.getElementById("missing");
const outcome = document.getElementById("outcome");
const invitation = document.getElementById("invitation");
let reports = null;

function chosen(question) {
  const radio = question.querySelector("input:checked");
  return radio === null ? null : Number(radio.value);
}

function option(question, index) {
  return question.querySelectorAll(".choices label span")[index].textContent;
}

function showPreview() {
  const answers = questions.map(chosen);
  const first = answers.indexOf(null);
  missing.hidden = first === -1;
  if (first !== -1) {
    questions[first].querySelector("input").focus();
    return;
  }
  reports = answers.map((answer, i) => report(answer, coins[i], Number(questions[i].dataset.categories)));
  rows.replaceChildren(
    ...questions.map((question, i) => {
      const row = document.createElement("tr");
      const cells = [question.querySelector("legend").textContent, option(question, answers[i]), option(question, reports[i])];
      cells.forEach((text, column) => {
        const cell = document.createElement(column === 0 ? "th" : "td");
        if (column === 0) cell.scope = "row";
        cell.textContent = text;
        row.append(cell);
      });
      return row;
    }),
  );
  survey.hidden = true;
  preview.hidden = false;
  document.getElementById("preview-heading").focus();
}

// Once something may have been sent, answers cannot be changed: the same coins for two answers would tell their
// difference. Sending again sends the same.
async function sendReports() {
  send.disabled = true;
  change.hidden = true;
  const body = { submission, reports, ...(invitation && { invitation: invitation.value }) };
  let text = "The server could not be reached. Nothing was sent twice; you may try again.";
  try {
    const answer = await fetch(survey.dataset.to, {
      method: "POST",
      credentials: "omit",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    const said = await answer.json();
    if (answer.ok) {
      preview.hidden = true;
      text = "Thank you. What you saw in the last column is all that was sent.";
    } else text = typeof said.message === "string" ? said.message : "The server did not accept this.";
    outcome.className = answer.ok ? "notice good" : "notice stop";
  } catch {
    outcome.className = "notice stop";
  }
  outcome.textContent = text;
  outcome.hidden = false;
  outcome.focus();
  send.disabled = false;
}

review.addEventListener("click", showPreview);
send.addEventListener("click", sendReports);
change.addEventListener("click", () => {
  preview.hidden = true;
  survey.hidden = false;
  document.getElementById("survey-heading").focus();
});
survey.hidden = false;
document.getElementById("needs-script").hidden = true;

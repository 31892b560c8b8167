"use strict";
// Without this script each step is a page. With it, services are found while one
// types, a test shows its result in place, a button beside each secret shows it, and
// leaving a form that is not saved asks first.
(() => {
	let dirty = false, leaves = false;

	function start(root) {
		for (const e of root.querySelectorAll(".with-script")) e.hidden = false;
		for (const e of root.querySelectorAll(".without-script")) e.hidden = true;
		for (const button of root.querySelectorAll(".reveal")) {
			const input = button.previousElementSibling;
			const set = (shown) => {
				input.type = shown ? "text" : "password";
				button.setAttribute("aria-pressed", shown);
			};
			set(input.type === "text");
			button.addEventListener("click", () => set(input.type === "password"));
			// A browser remembers the value of a text field, but not of a password field.
			input.form.addEventListener("submit", () => set(false));
		}
	}
	start(document);

	// post sends a form as the button would, and returns the page that comes back.
	async function post(form, fields, signal) {
		const body = new URLSearchParams(new FormData(form));
		for (const name in fields) body.set(name, fields[name]);
		const r = await fetch(form.action, { method: "POST", headers: { Accept: "text/html" }, body, signal });
		if (!r.headers.get("Content-Type")?.startsWith("text/html")) throw new Error(r.status);
		return new DOMParser().parseFromString(await r.text(), "text/html");
	}

	// The field of the first step finds while one types. What was pasted is a form at
	// once, if it is recognised.
	const find = document.getElementById("find");
	if (find) {
		const text = document.getElementById("text");
		let timer, request;
		text.addEventListener("input", (e) => {
			clearTimeout(timer);
			if (e.inputType === "insertFromPaste" && text.value.trim().length > 6) {
				find.requestSubmit();
				return;
			}
			timer = setTimeout(async () => {
				request?.abort();
				request = new AbortController();
				try {
					const page = await post(find, { do: "live" }, request.signal);
					for (const id of ["found", "summary"]) {
						const fresh = page.getElementById(id), old = document.getElementById(id);
						// A screen reader does not read the same text again.
						if (fresh.innerHTML !== old.innerHTML) old.replaceChildren(...fresh.childNodes);
					}
					text.setAttribute("aria-invalid", "false");
				} catch {
					// The button finds, too.
				}
			}, 200);
		});
	}

	const form = document.getElementById("destination");
	if (!form) return;
	dirty = [...form.querySelectorAll(".problems, .result, #line, #url")].length > 0 || document.querySelector(".recognized") !== null;
	form.addEventListener("input", () => {
		dirty = true;
		// A result is of the values that were tested.
		document.getElementById("outcome-of-form").replaceChildren();
	});
	addEventListener("beforeunload", (e) => {
		if (dirty && !leaves) e.preventDefault();
	});
	let busy = false;
	form.addEventListener("submit", async (e) => {
		if (e.submitter?.value !== "test") {
			leaves = true;
			return;
		}
		e.preventDefault();
		if (busy) return;
		busy = true;
		const outcome = document.getElementById("outcome-of-form");
		outcome.textContent = "Testing…";
		e.submitter.setAttribute("aria-disabled", "true");
		try {
			const page = await post(form, { do: "test" });
			const answer = page.getElementById("outcome-of-form");
			if (!answer || page.querySelector(".problems")) {
				// The page shows what to correct.
				leaves = true;
				outcome.replaceChildren();
				const hidden = document.createElement("input");
				[hidden.type, hidden.name, hidden.value] = ["hidden", "do", "test"];
				form.append(hidden);
				form.submit();
				return;
			}
			outcome.replaceChildren(...answer.childNodes);
			dirty = true;
		} catch {
			outcome.textContent = "The connection to the gateway failed, so the result is unknown.";
		} finally {
			busy = false;
			e.submitter.removeAttribute("aria-disabled");
		}
	});
})();

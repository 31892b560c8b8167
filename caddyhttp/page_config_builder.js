"use strict";
// Without this script a button shows all secrets. With it, each has a button.
for (const e of document.querySelectorAll(".with-script")) e.hidden = false;
for (const e of document.querySelectorAll(".without-script")) e.hidden = true;
for (const button of document.querySelectorAll(".reveal")) {
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

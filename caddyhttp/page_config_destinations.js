"use strict";
// Without this script a test is a form, and the answer is the page with the
// result. With it, the result appears in place.
for (const form of document.querySelectorAll("form.test")) {
	const button = form.querySelector("button");
	const item = form.parentElement, result = item.querySelector(".result");

	async function test() {
		const address = new URL(form.action);
		address.hash = "";
		const r = await fetch(address, { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams(new FormData(form)) });
		const answer = await r.json();
		const x = answer.results[0];
		if (!x) return ["failed", `Not tested: ${answer.error}.`];
		const time = x.elapsed_ms < 1000 ? `${x.elapsed_ms} ms` : `${(x.elapsed_ms / 1000).toFixed(1)} s`;
		return x.error ? ["failed", `Failed after ${time}: ${x.error}`] : [x.status, x.status === "delivered" ? `Delivered in ${time}.` : "Nothing to send."];
	}

	form.addEventListener("submit", async (e) => {
		e.preventDefault();
		if (button.getAttribute("aria-disabled")) return;
		button.setAttribute("aria-disabled", "true");
		item.className = "";
		result.textContent = "Testing…";
		try {
			[item.className, result.textContent] = await test();
		} catch {
			[item.className, result.textContent] = ["failed", "The connection to the gateway failed, so that the result is not known."];
		}
		button.removeAttribute("aria-disabled");
	});
}

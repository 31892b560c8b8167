"use strict";
// Without this script a test is a form, and the answer is the page with the
// result. With it, the result appears in place.
for (const form of document.querySelectorAll("form.test")) {
	const button = form.querySelector("button");
	const item = form.parentElement, result = item.querySelector(".result");

	async function test() {
		const address = new URL(form.action);
		address.hash = "";
		const r = await fetch(address, { method: "POST", headers: { Accept: "application/x-ndjson" }, body: new URLSearchParams(new FormData(form)) });
		const answer = JSON.parse((await r.text()).trimEnd().split("\n").pop());
		const x = answer.results[0];
		if (!x) return ["failed", `Not tested: ${answer.error}.`];
		if (x.error) return ["failed", `Failed: ${x.error}.`];
		const time = x.elapsed_ms < 1000 ? `${x.elapsed_ms} ms` : `${(x.elapsed_ms / 1000).toFixed(1)} s`;
		return [x.status, x.status === "delivered" ? `Delivered in ${time}.` : "Nothing to send."];
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
			[item.className, result.textContent] = ["failed", "The connection to the gateway failed, so the result is unknown."];
		}
		button.removeAttribute("aria-disabled");
	});
}

"use strict";
// Without this script a test is a form, and the answer is the page with the
// result. With it, the result appears in place.
function testInPlace(form) {
	const button = form.querySelector("button");
	const item = form.closest("li"), result = item.querySelector(".result");

	function show(status, text) {
		item.classList.remove("delivered", "failed", "skipped");
		if (status) item.classList.add(status);
		result.textContent = text;
	}

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
		form.closest("details.menu")?.removeAttribute("open");
		show("", "Testing…");
		try {
			show(...await test());
		} catch {
			show("failed", "The connection to the gateway failed, so the result is unknown.");
		}
		button.removeAttribute("aria-disabled");
	});
}
for (const form of document.querySelectorAll("form.test")) testInPlace(form);
document.addEventListener("refreshed", (e) => {
	for (const form of e.detail.querySelectorAll("form.test")) testInPlace(form);
});
document.getElementById("test-all")?.addEventListener("submit", (e) => {
	e.preventDefault();
	document.querySelector("details.rest")?.setAttribute("open", "");
	for (const form of document.querySelectorAll("form.test")) form.requestSubmit();
});

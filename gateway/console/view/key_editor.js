"use strict";
// Without this script, the buttons Save and Check show the mistakes. With it, the
// configuration is also checked while it is written.
(() => {
	const form = document.getElementById("editor");
	if (!form) return;
	const text = form.elements.config, lines = document.getElementById("lines"), checked = document.getElementById("checked");
	const maxLines = 1000;
	let lineClasses = new Map(), timer, request;

	for (const m of checked.querySelectorAll("[data-line]")) {
		lineClasses.set(Number(m.dataset.line), m.parentElement.className === "log_ERROR" ? "wrong" : "warned");
	}

	function element(name, className, content) {
		const e = document.createElement(name);
		e.className = className;
		e.textContent = content;
		return e;
	}

	// drawLines writes the line numbers beside the text.
	function drawLines() {
		const n = Math.min(Math.max(12, text.value.split("\n").length + 1), maxLines);
		text.rows = n;
		const all = [];
		for (let i = 1; i <= n; i++) {
			const line = element("span", lineClasses.get(i) ?? "", i);
			line.id = `line-${i}`;
			all.push(line, "\n");
		}
		lines.replaceChildren(...all);
	}

	function plural(n, what) {
		return `${n} ${what}${n === 1 ? "" : "s"}`;
	}

	// show writes the mistakes and warnings.
	function show(c) {
		lineClasses = new Map();
		const list = document.createElement("ul");
		list.className = "logs";
		for (const [all, level, lineClass] of [[c.warnings, "log_WARNING", "warned"], [c.mistakes, "log_ERROR", "wrong"]]) {
			const items = all.map((m) => {
				const item = element("li", level, "");
				if (m.line) {
					lineClasses.set(m.line, lineClass);
					const link = element("a", "", `Line ${m.line}`);
					link.href = `#line-${m.line}`;
					link.dataset.line = m.line;
					item.append(link, " ");
				}
				item.append(m.text);
				return item;
			});
			list.prepend(...items);
		}
		const n = c.mistakes.length;
		const summary = n ? `${plural(n, "mistake")}.` : `No mistakes; ${plural(c.urls, "URL")}. Not saved yet.`;
		const fresh = document.createElement("div");
		fresh.append(element("p", "outcome", summary), list);
		// A screen reader does not read the same text again.
		if (checked.innerHTML !== fresh.innerHTML) checked.replaceChildren(...fresh.childNodes);
		text.setAttribute("aria-invalid", n > 0);
		drawLines();
	}

	// check asks the gateway for mistakes, and reports whether it has answered.
	async function check(query) {
		clearTimeout(timer);
		request?.abort();
		request = new AbortController();
		if (!text.value.trim()) {
			checked.replaceChildren();
			lineClasses = new Map();
			drawLines();
			return true;
		}
		try {
			const answer = await fetch(form.dataset.check + query, {
				method: "POST", body: new URLSearchParams(new FormData(form)), headers: {Accept: "application/json"}, signal: request.signal,
			});
			if (!answer.ok) return false;
			show(await answer.json());
			return true;
		} catch (e) {
			return e.name === "AbortError";
		}
	}

	text.addEventListener("input", () => {
		drawLines();
		clearTimeout(timer);
		timer = setTimeout(check, 400, "=local");
	});
	for (const f of form.elements.format) f.addEventListener("change", () => check("=local"));
	// The browser asks before a changed text is lost.
	let leaves = false;
	form.addEventListener("submit", () => { leaves = true; });
	addEventListener("beforeunload", (e) => {
		if (text.value !== text.defaultValue && !leaves) e.preventDefault();
	});
	let submits = false;
	document.getElementById("check").addEventListener("click", async (e) => {
		if (submits) return;
		e.preventDefault();
		const button = e.currentTarget;
		if (await check("")) return;
		submits = true; // the next page shows the mistakes
		button.click();
	});
	// A link to a line selects it.
	checked.addEventListener("click", (e) => {
		const n = Number(e.target.dataset.line);
		if (!n) return;
		e.preventDefault();
		const before = text.value.split("\n").slice(0, n - 1).reduce((sum, line) => sum + line.length + 1, 0);
		const end = text.value.indexOf("\n", before);
		text.focus();
		text.setSelectionRange(before, end < 0 ? text.value.length : end);
		document.getElementById(`line-${n}`)?.scrollIntoView({block: "center"});
	});
	// A long text scrolls in its field.
	text.addEventListener("scroll", () => { lines.scrollTop = text.scrollTop; });
})();

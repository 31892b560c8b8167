"use strict";
// Without this script, times are in UTC, lines are copied by hand, and a page shows
// what was true when it was loaded. With it, times are those of the reader, buttons
// copy, and what a page says of deliveries follows what happens.
(() => {
	const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
	const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
	const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
	const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
	const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
	const ago = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto", style: "short" });

	function relative(then) {
		let n = (then - Date.now()) / 1000;
		for (const [unit, size] of [["second", 60], ["minute", 60], ["hour", 24], ["day", Infinity]]) {
			if (Math.abs(n) < size) return ago.format(Math.round(n), unit);
			n /= size;
		}
	}

	// dayOf names a day as people do.
	function dayOf(t, now) {
		const days = Math.round((new Date(now.toDateString()) - new Date(t.toDateString())) / 864e5);
		if (days < 2) return new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" }).format(-days, "day");
		return new Intl.DateTimeFormat(undefined, { dateStyle: "full" }).format(t);
	}

	// divideDays divides messages by the days of the reader; the page has those of UTC.
	function divideDays(root) {
		const lists = root.querySelectorAll("ul.timeline");
		const parent = lists[0]?.parentElement;
		const items = [...lists].filter((l) => l.parentElement === parent).flatMap((l) => [...l.children]);
		const heading = parent?.querySelector("h3.day");
		if (!heading) return;
		let day, list;
		const made = [];
		for (const i of items) {
			const time = i.querySelector("time[datetime]");
			const d = new Date(time.dateTime).toDateString();
			if (d !== day) {
				const h = heading.cloneNode(true);
				h.firstElementChild.dateTime = time.dateTime;
				made.push(h, list = lists[0].cloneNode(false));
				day = d;
			}
			list.append(i);
		}
		for (const e of [...parent.querySelectorAll("h3.day, ul.timeline")]) e.remove();
		parent.prepend(...made);
	}

	function showTimes(root) {
		divideDays(root);
		for (const e of root.querySelectorAll("time[datetime]")) {
			const t = new Date(e.dateTime);
			if (isNaN(t)) continue;
			const now = new Date();
			const since = e.dataset.ago !== undefined;
			if (e.dataset.day !== undefined) {
				e.textContent = dayOf(t, now);
				continue;
			}
			let text = (since || e.dataset.clock !== undefined ? minutes : clock).format(t);
			if (e.dataset.clock === undefined && t.toDateString() !== now.toDateString()) text = `${(t.getFullYear() === now.getFullYear() ? day : year).format(t)}, ${text}`;
			if (since) text += ` (${relative(t)})`;
			e.textContent = text;
			e.title = full.format(t);
		}
	}

	function showButtons(root) {
		for (const b of root.querySelectorAll("button.copy")) {
			if (!navigator.clipboard) continue; // the page came without TLS
			b.hidden = false;
			b.addEventListener("click", async () => {
				await navigator.clipboard.writeText(b.parentElement.querySelector("code, output").textContent);
				b.textContent = "Copied";
				setTimeout(() => b.textContent = "Copy", 2000);
			});
		}
		for (const e of root.querySelectorAll("select.at-once")) e.addEventListener("change", () => e.form.requestSubmit());
	}

	showTimes(document);
	showButtons(document);

	// The parts of the page that follow what happens are fetched again while somebody
	// looks at them. A part that somebody uses stays as it is.
	const parts = document.querySelectorAll("[data-live][id]");
	async function refresh() {
		if (document.hidden) return;
		let page;
		try {
			const r = await fetch(location.href.replace(/#.*/, ""), { headers: { Accept: "text/html" } });
			if (!r.ok) return;
			page = new DOMParser().parseFromString(await r.text(), "text/html");
		} catch {
			return; // the next one may work
		}
		for (const old of document.querySelectorAll("[data-live][id]")) {
			const part = page.getElementById(old.id);
			if (!part || old.contains(document.activeElement) || old.querySelector("details[open], .result:not(:empty)")) continue;
			showTimes(part);
			if (part.innerHTML === old.innerHTML) continue;
			old.replaceWith(part);
			showButtons(part);
			document.dispatchEvent(new CustomEvent("refreshed", { detail: part }));
		}
	}
	if (parts.length > 0 && location.search.indexOf("test") < 0) setInterval(refresh, 5000);
})();

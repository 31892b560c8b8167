"use strict";
// Without this script, times are in UTC, lines are copied by hand, and a page shows
// what was true when it was loaded. With it, times are those of the reader, buttons
// copy, and what a page says of deliveries, and the count in its title, follow what happens.
(() => {
	const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
	const year = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
	const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
	const minutes = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
	const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

	// dayOf names a day as people do.
	function dayOf(t, now) {
		const days = Math.round((new Date(now.toDateString()) - new Date(t.toDateString())) / 864e5);
		const name = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" }).format(-days, "day");
		if (days < 2) return name[0].toLocaleUpperCase() + name.slice(1);
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

	// rounded returns seconds in one unit, and whether they are an hour or more. What is to come is
	// rounded up, and what lasts is rounded down.
	function rounded(s, round) {
		const n = round(s), m = round(s / 60), h = round(s / 3600);
		if (n < 60) return [`${Math.max(n, 1)} s`, false];
		if (m < 60) return [`${m} min`, false];
		return [h < 48 ? `${h} h` : `${round(s / 86400)} days`, true];
	}

	// onClock returns a time of the clock, with the day if it is another one.
	function onClock(t, now, form) {
		const text = form.format(t);
		return t.toDateString() === now.toDateString() ? text : `${(t.getFullYear() === now.getFullYear() ? day : year).format(t)}, ${text}`;
	}

	// distance says what the server says of a time, such as "12 s ago", "in 4 h (16:00)" or, if it lasts, "for 14 min".
	function distance(t, now, lasts) {
		const s = (now - t) / 1000, to = s < 0 && !lasts;
		const [text, long] = rounded(Math.abs(lasts ? Math.max(s, 0) : s), to ? Math.ceil : Math.floor);
		const at = long ? ` (${lasts ? "since " : ""}${onClock(t, now, minutes)})` : "";
		if (lasts) return `for ${text}${at}`;
		return to ? `in ${text}${at}` : s < 1 ? "now" : `${text} ago${at}`;
	}

	// showBars gives the parts of bars, of half an hour each, the times of the reader.
	function showBars(root) {
		for (const b of root.querySelectorAll("svg.bar[data-end]")) {
			const end = Date.parse(b.dataset.end);
			b.querySelectorAll("title").forEach((e) => {
				const to = end - (47 - e.dataset.part) * 18e5;
				e.textContent = e.textContent.replace(/^.*?: /, `${minutes.format(to - 18e5)}–${minutes.format(to)}: `);
			});
		}
	}

	function showTimes(root) {
		divideDays(root);
		showBars(root);
		for (const e of root.querySelectorAll("time[datetime]")) {
			const t = new Date(e.dateTime);
			if (isNaN(t)) continue;
			const now = new Date();
			if (e.dataset.short !== undefined || e.dataset.ago !== undefined) {
				e.textContent = distance(t, now, false);
				e.title = full.format(t);
				continue;
			}
			if (e.dataset.lasts !== undefined) {
				e.textContent = distance(t, now, true);
				e.title = full.format(t);
				continue;
			}
			if (e.dataset.day !== undefined) {
				e.textContent = dayOf(t, now);
				continue;
			}
			const brief = e.dataset.at !== undefined || e.dataset.clock !== undefined;
			e.textContent = e.dataset.clock === undefined ? onClock(t, now, brief ? minutes : clock) : minutes.format(t);
			e.title = full.format(t);
		}
	}

	function showButtons(root) {
		for (const b of root.querySelectorAll("button.copy")) {
			b.hidden = false;
			b.addEventListener("click", async () => {
				const from = b.parentElement.querySelector("code, output");
				if (navigator.clipboard) {
					await navigator.clipboard.writeText(from.textContent);
				} else { // the page came without TLS
					getSelection().selectAllChildren(from);
					document.execCommand("copy");
				}
				b.textContent = "Copied";
				setTimeout(() => b.textContent = "Copy", 2000);
			});
		}
		for (const e of root.querySelectorAll("select.at-once")) e.addEventListener("change", () => e.form.requestSubmit());
	}

	// A menu closes with a click beside it and with Escape.
	document.addEventListener("click", (e) => {
		for (const m of document.querySelectorAll(".menu[open]")) if (!m.contains(e.target)) m.open = false;
	});
	document.addEventListener("keydown", (e) => {
		const m = e.key === "Escape" && document.activeElement?.closest(".menu[open]");
		if (!m) return;
		m.open = false;
		m.querySelector("summary").focus();
	});

	showTimes(document);
	showButtons(document);

	// The count in the navigation, the title and the icon follow what happens on every page,
	// also in a tab that nobody looks at. The parts of a page that do so are fetched again while
	// somebody looks at them. A part that somebody uses stays as it is.
	const counted = document.querySelector("[data-count]");
	const parts = document.querySelector("[data-live][id]") && location.search.indexOf("test") < 0;
	const address = parts ? location.href.replace(/#.*/, "") : counted && document.querySelector("a.brand").href;

	function showCount(page) {
		const now = page.querySelector("[data-count]"), old = document.querySelector("[data-count]");
		if (!now || !old) return;
		if (now.innerHTML !== old.innerHTML) old.innerHTML = now.innerHTML;
		const count = now.querySelector(".badge");
		document.title = (count ? `(${count.textContent}) ` : "") + document.title.replace(/^\(\d+\) /, "");
		const icon = page.querySelector("link[rel=icon]"), shown = document.querySelector("link[rel=icon]");
		if (icon && shown && icon.getAttribute("href") !== shown.getAttribute("href")) shown.setAttribute("href", icon.getAttribute("href"));
	}

	let last = Date.now();
	async function refresh() {
		// Nobody looks at a hidden tab: its count may be half a minute old.
		if (document.hidden && (!counted || Date.now() - last < 30000)) return;
		last = Date.now();
		let page;
		try {
			const r = await fetch(address, { headers: { Accept: "text/html" } });
			if (!r.ok) return;
			page = new DOMParser().parseFromString(await r.text(), "text/html");
		} catch {
			return; // the next one may work
		}
		showCount(page);
		if (!parts || document.hidden) return;
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
	if (address) {
		setInterval(refresh, 5000);
		document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
	}
})();

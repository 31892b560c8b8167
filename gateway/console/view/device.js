"use strict";
(() => {
	const page = document.getElementById("device"), find = (id) => document.getElementById(id);
	const { key, serverKey, invite } = page.dataset;
	const scope = new URL(page.dataset.scope, location);
	const store = openDevices(scope);
	const states = page.querySelectorAll("form, section");

	function show(id, focus) {
		for (const e of states) e.hidden = e.id !== id;
		if (focus) find(id).querySelector("h2").focus();
	}

	function say(text) {
		find("said").textContent = text;
		find("said").hidden = !text;
	}

	// --- what this browser is ---

	const touchMac = /Macintosh/.test(navigator.userAgent) && navigator.maxTouchPoints > 1; // how iPads introduce themselves
	const apple = touchMac || /iPhone|iPad|iPod/.test(navigator.userAgent);
	const installed = navigator.standalone || matchMedia("(display-mode: standalone)").matches;

	// obstacle returns the state that says why this browser cannot be a device, or "".
	function obstacle() {
		if (!isSecureContext) return "insecure";
		if (apple && !installed) return "iphone";
		if (!("serviceWorker" in navigator) || !("PushManager" in self) || !("Notification" in self)) return "unsupported";
		return Notification.permission === "denied" ? "denied" : "";
	}

	function suggestedName() {
		const first = (list) => list.find(([pattern]) => pattern.test(navigator.userAgent))?.[1];
		const system = touchMac ? "iPad" : first([[/iPhone/, "iPhone"], [/iPad/, "iPad"], [/Android/, "Android"], [/CrOS/, "ChromeOS"], [/Windows/, "Windows"], [/Mac/, "Mac"], [/Linux/, "Linux"]]);
		const browser = first([[/Edg/, "Edge"], [/SamsungBrowser/, "Samsung Internet"], [/Firefox/, "Firefox"], [/Chrom/, "Chrome"], [/Safari/, "Safari"]]);
		if (apple) return system;
		return [browser, system].filter(Boolean).join(" on ") || "Browser";
	}

	// --- subscriptions ---

	const base64 = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

	async function register() {
		await navigator.serviceWorker.register(new URL("push.js", scope), { scope: scope.pathname });
		return navigator.serviceWorker.ready;
	}

	// subscription returns the subscription of this browser, which all keys share.
	async function subscription(registration, wanted) {
		let s = await registration.pushManager.getSubscription();
		if (s && wanted && s.options?.applicationServerKey && base64(s.options.applicationServerKey) !== wanted) {
			await s.unsubscribe(); // it is for another key of the gateway
			s = null;
		}
		return s ?? registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: wanted });
	}

	async function errorOf(r) {
		try {
			const { error } = await r.json();
			if (error) return error[0].toUpperCase() + error.slice(1) + ".";
		} catch {
			// A proxy may have answered.
		}
		return `The server answered ${r.status} ${r.statusText}`.trim() + ".";
	}

	async function add(form) {
		// It is asked first, while the browser still knows that somebody has clicked.
		const permission = await Notification.requestPermission();
		if (permission === "denied") return show("denied", true);
		if (permission !== "granted") return say("The browser has not been told whether this site may show notifications. Try again, and allow it.");
		const registration = await register();
		let s;
		try {
			s = await subscription(registration, serverKey);
		} catch (e) {
			return say(`The browser could not subscribe at its push service (${e.message}). Some browsers, VPNs and firewalls turn it off. Try again, or another browser.`);
		}
		const tags = (form.elements.tags?.value ?? "").split(/[\s,]+/).filter(Boolean);
		const r = await fetch(new URL(`${key}/devices`, scope), {
			method: "POST",
			headers: { Accept: "application/json", "Content-Type": "application/json" },
			body: JSON.stringify({ name: form.elements.name.value, ...(tags.length && { tags }), subscription: s.toJSON(), ...(invite && { invite }) }),
		});
		if (!r.ok) return say(await errorOf(r));
		const { id, secret, name = form.elements.name.value, tags: given = tags } = await r.json();
		const device = { key, id, secret, name, tags: given ?? [], serverKey };
		await store.put(device);
		subscribed(device, true);
	}

	// --- the device ---

	let own;

	function subscribed(device, focus) {
		own = device;
		say("");
		page.querySelector("[data-text=name]").textContent = device.name;
		page.querySelector("[data-text=tags]").textContent = device.tags.join(", ");
		find("subscribed-tags").hidden = device.tags.length === 0;
		find("tested").textContent = "";
		show("subscribed", focus);
	}

	let late; // the timer that says that no test has come
	let arrived; // a message has, perhaps before the answer of the gateway

	async function test() {
		clearTimeout(late);
		arrived = false;
		find("tested").textContent = "Sending…";
		const r = await store.request("POST", own, "/test");
		if (!r.ok) {
			find("tested").textContent = await errorOf(r);
			return gone(r) && forgotten();
		}
		if (arrived) return;
		find("tested").textContent = "Sent. Waiting for it…";
		late = setTimeout(() => find("tested").textContent = "It was sent, but has not come yet. Does the system let this browser show notifications, and is the device online?", 15000);
	}

	async function remove() {
		const r = await store.request("DELETE", own);
		if (!r.ok && !gone(r)) return say(await errorOf(r));
		await forget();
		location.reload(); // the gateway knows what comes next
	}

	// gone reports whether the gateway does not know the device any more.
	const gone = (r) => r.status === 401 || r.status === 404;

	// forget forgets the device here. The last one takes the subscription with it.
	async function forget() {
		await store.remove(key);
		own = null;
		if ((await store.all()).length > 0) return;
		const registration = await navigator.serviceWorker.getRegistration(scope);
		await (await registration?.pushManager.getSubscription())?.unsubscribe();
	}

	async function forgotten() {
		await forget();
		await start(true);
		say("Somebody has removed this device from the key.");
	}

	// refresh tells the gateway the subscription, because browsers change it without
	// telling the worker.
	async function refresh() {
		const device = own;
		try {
			const registration = await register();
			await store.renew((await subscription(registration, device.serverKey)).toJSON());
		} catch {
			return say("The gateway, or the push service of the browser, cannot be reached now. Messages may not arrive.");
		}
		if (own === device && !await store.get(key)) await forgotten();
	}

	// --- the page ---

	async function start(focus) {
		const device = await store.get(key);
		if (!device && !serverKey) return show("refused", focus); // rather than to prepare for nothing
		const stop = obstacle();
		if (stop) return show(stop, focus);
		if (device) return subscribed(device, focus);
		show("new", focus);
	}

	// busy runs what a button does, once at a time.
	let working = false;
	async function busy(action) {
		if (working) return;
		working = true;
		page.setAttribute("aria-busy", "true");
		say("");
		try {
			await action();
		} catch (e) {
			say(e instanceof TypeError ? "The gateway cannot be reached. Try again." : `That did not work: ${e.message}`);
		}
		page.removeAttribute("aria-busy");
		working = false;
	}

	const form = find("new");
	form.elements.name.value = suggestedName();
	form.addEventListener("submit", (e) => {
		e.preventDefault();
		busy(() => add(form));
	});
	// The buttons of the device are there before it is refreshed. A click waits for that.
	const onDevice = (button, action) => find(button).addEventListener("click", async () => {
		await opened;
		if (own) busy(action);
	});
	onDevice("test", test);
	onDevice("remove", remove);
	navigator.serviceWorker?.addEventListener("message", (e) => {
		if (e.data?.received !== key) return;
		clearTimeout(late);
		arrived = true;
		if (find("tested").textContent) find("tested").textContent = "It has arrived.";
	});
	navigator.permissions?.query({ name: "notifications" }).then((p) => p.onchange = () => busy(start)).catch(() => {});

	const opened = busy(async () => {
		await start();
		if (own) await refresh();
	});
})();

// The service worker of devices: it shows what the gateway pushes, and says that it has.
// The file device_store.js is before it.
const scope = new URL(self.registration.scope);
const store = openDevices(scope);

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (e) => e.waitUntil(self.clients.claim()));
self.addEventListener("push", (e) => e.waitUntil(receive(e.data)));
self.addEventListener("notificationclick", (e) => {
	e.notification.close();
	const { page, answers = [] } = e.notification.data;
	const chosen = answers.find((a) => a.action === e.action);
	if (chosen) e.waitUntil(answer(e.notification, chosen));
	else e.waitUntil(e.action === "acknowledge" ? acknowledge(e.notification) : open(page));
});
self.addEventListener("pushsubscriptionchange", (e) => e.waitUntil(resubscribe(e)));

// read returns the message of a push. Whatever comes, there is something to show:
// browsers end a subscription whose pushes are not shown.
function read(data) {
	try {
		const m = data.json();
		if (m && typeof m === "object") return m;
	} catch {
		// Only the gateway can encrypt for this device, so this is a newer gateway.
	}
	return {};
}

async function receive(data) {
	const m = read(data);
	await show(m);
	const others = [confirm(m), badge(m.badge), tell(m.key)];
	await Promise.allSettled(others);
}

function show(m) {
	const incident = m.incident || "";
	const answers = (m.actions || []).map((a, i) => ({ action: `answer${i}`, title: a.title, link: a.link }));
	return self.registration.showNotification(m.title || m.key || "Notify", {
		body: m.text || "",
		lang: "",
		icon: new URL("icon-192.png", scope).href,
		badge: new URL("badge.png", scope).href,
		timestamp: Date.parse(m.time) || Date.now(),
		data: { page: pageOf(m), acknowledge: m.acknowledge && pageOf(m), answers, key: m.key, title: m.title },
		// A later message about an incident takes the place of the earlier one.
		...(incident && { tag: incident, renotify: Boolean(m.renotify) }),
		...(answers.length > 0 && { actions: answers.map(({ action, title }) => ({ action, title })), requireInteraction: true }),
		...(m.acknowledge && m.link && { actions: [{ action: "acknowledge", title: "Acknowledge" }] }),
	});
}

// pageOf returns the address of the incident of a message, or of the device's page.
function pageOf(m) {
	return new URL(m.link || (m.key ? `${m.key}?device` : ""), scope).href;
}

// confirm posts the receipt, so that the gateway knows that the device is there.
async function confirm(m) {
	if (!m.receipt || !m.device) return;
	const address = new URL(`${m.key}/devices/${m.device}/receipts`, scope);
	for (const pause of [1000, 5000, 0]) {
		try {
			const r = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ receipt: m.receipt }) });
			if (r.status < 500 && r.status !== 429) return;
		} catch {
			// The phone may just have woken up.
		}
		if (pause) await new Promise((done) => setTimeout(done, pause));
	}
}

// badge shows the number of open incidents on the icon of the app.
async function badge(open) {
	if (typeof open !== "number" || !navigator.setAppBadge) return;
	await (open > 0 ? navigator.setAppBadge(open) : navigator.clearAppBadge());
}

// tell tells the pages of the gateway that a message has come.
async function tell(key) {
	for (const c of await self.clients.matchAll({ type: "window" })) c.postMessage({ received: key });
}

async function acknowledge({ tag, data }) {
	const device = await store.get(data.key).catch(() => null);
	try {
		const r = await fetch(data.acknowledge, {
			method: "POST",
			headers: { Accept: "application/json" },
			body: new URLSearchParams({ do: "acknowledge", by: device?.name ?? "" }),
		});
		if (!r.ok) throw new Error(r.statusText);
	} catch {
		return open(data.page); // which says what is wrong
	}
	await self.registration.showNotification(`Acknowledged: ${data.title || data.key}`, {
		tag, silent: true, icon: new URL("icon-192.png", scope).href, badge: new URL("badge.png", scope).href, data: { page: data.page },
	});
}

// answer answers a question. The gateway knows the device by its link.
async function answer({ data }, { title, link }) {
	try {
		const r = await fetch(new URL(link, scope), { method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams({ answer: title }) });
		if (!r.ok) throw new Error(r.statusText);
	} catch {
		return open(data.page); // which says what counts, or what is wrong
	}
	await self.registration.showNotification(`Answered: ${title}`, {
		body: data.title || data.key, silent: true, icon: new URL("icon-192.png", scope).href, badge: new URL("badge.png", scope).href, data: { page: data.page },
	});
}

// open shows a page, in the window that has it if there is one.
async function open(page) {
	const windows = await self.clients.matchAll({ type: "window" });
	const there = windows.find((c) => c.url === page);
	return there ? there.focus() : self.clients.openWindow(page);
}

async function resubscribe(e) {
	const devices = await store.all();
	if (devices.length === 0) return;
	const s = e.newSubscription ?? await self.registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: e.oldSubscription?.options.applicationServerKey ?? devices[0].serverKey });
	await store.renew(s.toJSON());
}

"use strict";
// What this browser knows of itself as a device: an entry for each key, with the ID and
// the secret that change the device. The page of a device and the service worker use it.
function openDevices(scope) {
	const at = new URL(scope, self.location);

	// Gateways below different prefixes of an origin share its databases.
	function open() {
		return new Promise((done, fail) => {
			const r = indexedDB.open(`notify ${at.pathname}`, 1);
			r.onupgradeneeded = () => r.result.createObjectStore("devices", { keyPath: "key" });
			r.onsuccess = () => done(r.result);
			r.onerror = () => fail(r.error);
		});
	}

	async function run(mode, action) {
		const db = await open();
		try {
			return await new Promise((done, fail) => {
				const t = db.transaction("devices", mode), r = action(t.objectStore("devices"));
				t.oncomplete = () => done(r.result);
				t.onabort = t.onerror = () => fail(t.error);
			});
		} finally {
			db.close();
		}
	}

	const store = {
		get: (key) => run("readonly", (s) => s.get(key)),
		all: () => run("readonly", (s) => s.getAll()),
		put: (device) => run("readwrite", (s) => s.put(device)),
		remove: (key) => run("readwrite", (s) => s.delete(key)),

		// address returns the address of a device, or what is below it.
		address: (d, below = "") => new URL(`${d.key}/devices/${d.id}${below}`, at),

		// request sends a request with the secret of a device.
		request: (method, d, below, body) => fetch(store.address(d, below), {
			method,
			headers: { Accept: "application/json", Authorization: `Bearer ${d.secret}`, ...(body && { "Content-Type": "application/json" }) },
			body: body && JSON.stringify(body),
		}),

		// renew tells the gateway the present subscription, for all keys. It forgets
		// the devices that somebody has removed.
		async renew(subscription) {
			for (const d of await store.all()) {
				const r = await store.request("PUT", d, "", { subscription });
				if ([401, 404, 410].includes(r.status)) await store.remove(d.key);
			}
		},
	};
	return store;
}

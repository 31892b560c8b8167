package view

// DevicePage makes the reader's browser or phone a destination of a key. Anybody with an invitation
// may see it, even if the key has a token. It shows the same for all keys that the reader may not
// know.
type DevicePage struct {
	Root      string // see KeysPage
	Key       string
	Invite    string   // the invitation; "" if none is needed, or none is valid
	Tags      []string // tags that the device gets
	Refused   string   // why no device can be added; "" if one can
	ServerKey string   // the public VAPID key in base64url; "" if no device can be added
	Manifest  string   // the address of the manifest, which keeps the invitation
	Messages  string   // the address of the messages of the key; "" for none
}

// The page of a device is the only one that needs a script, because no form can ask a browser for a
// subscription.
var deviceParts = newParts(source{
	templates: []string{"device.html"},
	scripts:   []string{"device_store.js", "device.js"},
	styles:    []string{mainStyle},
	policy:    policyApp + policyForms,
})

func (p DevicePage) view() view {
	return view{title: p.Key + " on this device", parts: deviceParts}
}

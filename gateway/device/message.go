package device

import "github.com/caddy-notify/caddy-notify/notifier"

// added returns the message to a key about a new device. by is the user who has added it;
// "" if nobody is known.
func (d *Device) added() *notifier.Message {
	body := "From now on it gets the messages for this key. If you do not know it, revoke it."
	if d.By != "" {
		body = d.By + " has added it. " + body
	}
	return &notifier.Message{Title: "New device: " + d.Name, Body: body, Type: notifier.Info}
}

// gone returns the message to a key about a device that was removed, because its browser
// has ended the subscription.
func (d *Device) gone() *notifier.Message {
	return &notifier.Message{
		Title: "Device gone: " + d.Name, Type: notifier.Warning,
		Body: "Its browser has ended the subscription, so that it was removed and gets no more messages. If that was not intended, invite it again.",
	}
}

package view

import "time"

// Device is a browser or phone that gets the messages of a key.
type Device struct {
	ID, Name string
	Tags     []string
	Service  string    // the host of its push service
	Added    time.Time // when it subscribed
	Sent     time.Time // when something was last sent to it; zero for never
	Seen     time.Time // when it last confirmed a message; zero for never
	Problem  string    // why it may not get messages; "" if all is well
}

// Invitation lets one device subscribe.
type Invitation struct {
	Link  string
	Code  QRCode // code of the link
	Tags  []string
	Until time.Time // time of expiry
}

// QRCode is a QR code as the path of an SVG that is Size units wide and high.
type QRCode struct {
	Size int
	Path string
}

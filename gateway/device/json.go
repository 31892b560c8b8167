package device

import "time"

// JSON is a device as clients see it.
type JSON struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Tags    []string  `json:"tags"`
	Secret  string    `json:"secret,omitempty"` // of a new device
	Created time.Time `json:"created,omitzero"`
	By      string    `json:"by,omitempty"`      // the user who has subscribed
	Service string    `json:"service,omitempty"` // the host of the push service
	Sent    time.Time `json:"sent,omitzero"`     // the last message that its push service has taken
	Seen    time.Time `json:"seen,omitzero"`     // the last receipt
	Missing int       `json:"missing,omitempty"` // receipts in a row
}

// Short returns what a device is told about itself after a change.
func (d *Device) Short() JSON {
	return JSON{ID: d.ID, Name: d.Name, Tags: append([]string{}, d.Tags()...)}
}

// JSON returns all that is shown of the device. s is what is known of it, or nil.
func (d *Device) JSON(s *State) JSON {
	out := d.Short()
	out.Created, out.By, out.Service = d.Created.UTC(), d.By, d.Subscription.Host()
	if s != nil {
		out.Sent, out.Seen, out.Missing = s.Sent.UTC(), s.Seen.UTC(), s.Missing
	}
	return out
}

package notifier

import (
	"strconv"
	"strings"
)

// Identity is the sender that a destination shows.
type Identity struct {
	Name        string // for example "Caddy"
	Description string // for example "Caddy Notifications"
	URL         string // a page about the sender
	Icon        string // URL of a picture, in which {type} and {size} are replaced; "" for none
	Logo        string // URL of a picture for messages of every type; "" for none
}

// DefaultIdentity returns the identity of messages without one. It has no
// pictures, because a reader's program would fetch them from a server that
// neither the reader nor the operator chose.
func DefaultIdentity() Identity {
	return Identity{Name: "Caddy", Description: "Caddy Notifications", URL: "https://caddyserver.com/"}
}

// icon returns the URL of the picture for a type, or "" if there is none.
func (id *Identity) icon(t Type, pixels int) string {
	if id == nil || id.Icon == "" {
		return ""
	}
	n := strconv.Itoa(pixels)
	return strings.NewReplacer("{type}", string(t), "{size}", n+"x"+n).Replace(id.Icon)
}

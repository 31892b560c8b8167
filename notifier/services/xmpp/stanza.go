package xmpp

import (
	"cmp"
	"encoding/xml"
	"errors"

	"mellium.im/xmpp/stanza"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// incomingStanza holds the parts that we need of any stanza from the server.
type incomingStanza struct {
	XMLName xml.Name
	ID      string `xml:"id,attr"`
	From    string `xml:"from,attr"`
	Type    string `xml:"type,attr"`
	Body    string `xml:"body"`
	Status  []struct {
		Code int `xml:"code,attr"`
	} `xml:"http://jabber.org/protocol/muc#user x>status"`
	Error *stanza.Error `xml:"error"`
}

// isSelf reports whether the presence of an occupant is our own (XEP-0045,
// section 7.2.2).
func (s *incomingStanza) isSelf() bool {
	for _, status := range s.Status {
		if status.Code == 110 {
			return true
		}
	}
	return false
}

// asError returns the error in the stanza as the server's refusal of what, or
// nil if it has none.
func (s *incomingStanza) asError(what string) error {
	if s.Type != "error" {
		return nil
	}
	reason := "no reason given"
	if s.Error != nil {
		reason = cmp.Or(string(s.Error.Condition), reason)
		for _, text := range s.Error.Text {
			reason += " (" + text + ")"
			break
		}
	}
	err := errors.New("the XMPP server refused " + what + ": " + reason)
	if s.Error != nil && s.Error.Type == stanza.Auth { // such as the password of a room
		return notifier.Denied(err)
	}
	return err
}

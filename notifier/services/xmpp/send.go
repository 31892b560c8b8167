package xmpp

import (
	"context"
	"crypto/rand"
	"encoding/xml"
	"strings"

	"mellium.im/xmlstream"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/stanza"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// sendUser sends to a user. XMPP does not acknowledge messages, so a ping follows. The server
// handles stanzas in order (RFC 6120, section 10.1): when it answers the ping, it has the message
// or has answered with an error, as for an unknown user.
func (conn *connection) sendUser(ctx context.Context, c *notifier.Client, to jid.JID, m *notifier.Message) error {
	id, ping := newID(), newID()
	s, err := conn.exchange(ctx, c.AnswerTimeout(), func(s *incomingStanza) bool {
		return s.ID == ping || s.ID == id && s.Type == "error"
	}, messageStanza(id, to, stanza.ChatMessage, m), conn.pingStanza(ping))
	if err != nil || s.ID == ping {
		return err
	}
	return s.asError("the message")
}

// sendRoom sends to a room. If the room no longer knows us, it enters the room
// again, once.
func (conn *connection) sendRoom(ctx context.Context, c *notifier.Client, room jid.JID, m *notifier.Message) error {
	room = room.Bare()
	for again := false; ; again = true {
		if err := conn.enter(ctx, c, room); err != nil {
			return err
		}
		s, err := conn.sendOccupants(ctx, c, room, m)
		if err != nil {
			return err
		}
		if again || s.Error == nil || s.Error.Condition != stanza.NotAcceptable {
			return s.asError("the message to the room")
		}
		conn.mu.Lock()
		delete(conn.rooms, room.String())
		conn.mu.Unlock()
	}
}

// sendOccupants sends to a room that we are in. It returns the room's answer: the message, as all
// occupants get it, or an error (XEP-0045, section 7.4).
func (conn *connection) sendOccupants(ctx context.Context, c *notifier.Client, room jid.JID, m *notifier.Message) (*incomingStanza, error) {
	id := newID()
	return conn.exchange(ctx, c.AnswerTimeout(), func(s *incomingStanza) bool {
		from, nick := splitOccupant(s.From)
		if s.XMLName.Local != "message" || from != room.String() {
			return false
		}
		// Older rooms replace the id.
		return s.ID == id || s.Type == "groupchat" && nick == conn.rooms[from] && s.Body == m.Body
	}, messageStanza(id, room, stanza.GroupChatMessage, m))
}

// enter enters a room unless we are in it, without its history. If our nickname
// is taken, it uses another one.
func (conn *connection) enter(ctx context.Context, c *notifier.Client, room jid.JID) error {
	conn.mu.Lock()
	_, inside := conn.rooms[room.String()]
	conn.mu.Unlock()
	if inside {
		return nil
	}
	nick := conn.nick
	for range 2 {
		as, err := room.WithResource(nick)
		if err != nil {
			return err
		}
		s, err := conn.exchange(ctx, c.AnswerTimeout(), func(s *incomingStanza) bool {
			from, _ := splitOccupant(s.From)
			if s.XMLName.Local != "presence" || from != room.String() || s.Type != "error" && !s.isSelf() && s.From != as.String() {
				return false
			}
			if s.Type == "" { // HandleXMPP, which calls this, holds the lock
				_, conn.rooms[from] = splitOccupant(s.From)
			}
			return true
		}, stanza.Presence{To: as}.Wrap(xmlstream.Wrap(
			xmlstream.Wrap(nil, xml.StartElement{
				Name: xml.Name{Local: "history"},
				Attr: []xml.Attr{{Name: xml.Name{Local: "maxstanzas"}, Value: "0"}},
			}),
			element("http://jabber.org/protocol/muc", "x"))))
		if err != nil {
			return err
		}
		if s.Type != "error" {
			return nil
		}
		if s.Error == nil || s.Error.Condition != stanza.Conflict || nick != conn.nick {
			return s.asError("to let us into the room")
		}
		nick += "-" + strings.ToLower(rand.Text()[:4])
	}
	return nil
}

// messageStanza returns a message of this type.
func messageStanza(id string, to jid.JID, messageType stanza.MessageType, m *notifier.Message) xml.TokenReader {
	text := []xml.TokenReader{textElement("body", m.Body)}
	if m.Title != "" {
		text = append(text, textElement("subject", m.Title))
	}
	return stanza.Message{ID: id, To: to, Type: messageType}.Wrap(xmlstream.MultiReader(text...))
}

// textElement returns an element with a text. Characters that XML does not
// allow become U+FFFD.
func textElement(name, text string) xml.TokenReader {
	return xmlstream.Wrap(xmlstream.Token(xml.CharData(text)), element("", name))
}

func element(space, name string) xml.StartElement {
	return xml.StartElement{Name: xml.Name{Space: space, Local: name}}
}

// splitOccupant splits the address of an occupant of a room.
func splitOccupant(address string) (room, nick string) {
	room, nick, _ = strings.Cut(address, "/")
	return room, nick
}

func newID() string { return rand.Text() }

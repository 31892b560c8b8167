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

// writeUser sends to a user. Nobody confirms that, but stanzas are handled in
// their order (RFC 6120, section 10.1): once a ping that follows is answered,
// the server has the message, and has said so if it knows no such user.
func (conn *connection) writeUser(ctx context.Context, c *notifier.Client, to jid.JID, m *notifier.Message) error {
	id, ping := newID(), newID()
	s, err := conn.exchange(ctx, c.AnswerTimeout(), func(s *incomingStanza) bool {
		return s.ID == ping || s.ID == id && s.Type == "error"
	}, messageStanza(id, to, stanza.ChatMessage, m), conn.pingStanza(ping))
	if err != nil || s.ID == ping {
		return err
	}
	return s.refusal("the message")
}

// writeRoom sends to a room. Where the room no longer knows us, we enter it
// again, once.
func (conn *connection) writeRoom(ctx context.Context, c *notifier.Client, room jid.JID, m *notifier.Message) error {
	room = room.Bare()
	for again := false; ; again = true {
		if err := conn.enter(ctx, c, room); err != nil {
			return err
		}
		s, err := conn.say(ctx, c, room, m)
		if err != nil {
			return err
		}
		if again || s.Error == nil || s.Error.Condition != stanza.NotAcceptable {
			return s.refusal("the message to the room")
		}
		conn.mu.Lock()
		delete(conn.rooms, room.String())
		conn.mu.Unlock()
	}
}

// say sends to a room that we are in and returns what the room makes of it:
// the message, as everybody in it gets it, or an error (XEP-0045, section 7.4).
func (conn *connection) say(ctx context.Context, c *notifier.Client, room jid.JID, m *notifier.Message) (*incomingStanza, error) {
	id := newID()
	return conn.exchange(ctx, c.AnswerTimeout(), func(s *incomingStanza) bool {
		from, nick := splitOccupant(s.From)
		if s.XMLName.Local != "message" || from != room.String() {
			return false
		}
		// Older rooms give messages numbers of their own.
		return s.ID == id || s.Type == "groupchat" && nick == conn.rooms[from] && s.Body == m.Body
	}, messageStanza(id, room, stanza.GroupChatMessage, m))
}

// enter enters a room, unless we are in it, under another name where ours is
// taken, and without what was said there before.
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
			if s.Type == "" { // HandleXMPP holds the lock
				_, conn.rooms[from] = splitOccupant(s.From)
			}
			return true
		}, stanza.Presence{To: as}.Wrap(xmlstream.Wrap(
			xmlstream.Wrap(nil, xml.StartElement{Name: xml.Name{Local: "history"}, Attr: []xml.Attr{{Name: xml.Name{Local: "maxstanzas"}, Value: "0"}}}),
			element("http://jabber.org/protocol/muc", "x"))))
		if err != nil {
			return err
		}
		if s.Type != "error" {
			return nil
		}
		if s.Error == nil || s.Error.Condition != stanza.Conflict || nick != conn.nick {
			return s.refusal("to let us into the room")
		}
		nick += "-" + strings.ToLower(rand.Text()[:4])
	}
	return nil
}

func messageStanza(id string, to jid.JID, kind stanza.MessageType, m *notifier.Message) xml.TokenReader {
	text := []xml.TokenReader{textElement("body", m.Body)}
	if m.Title != "" {
		text = append(text, textElement("subject", m.Title))
	}
	return stanza.Message{ID: id, To: to, Type: kind}.Wrap(xmlstream.MultiReader(text...))
}

// textElement is an element that holds a text. Characters that XML does not know
// become U+FFFD.
func textElement(name, text string) xml.TokenReader {
	return xmlstream.Wrap(xmlstream.Token(xml.CharData(text)), element("", name))
}

func element(space, name string) xml.StartElement {
	return xml.StartElement{Name: xml.Name{Space: space, Local: name}}
}

// splitOccupant takes the address of somebody in a room apart.
func splitOccupant(address string) (room, nick string) {
	room, nick, _ = strings.Cut(address, "/")
	return room, nick
}

func newID() string { return rand.Text() }

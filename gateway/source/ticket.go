package source

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// A ticket replaces the token in the query of one request to one address. The answers of some APIs
// contain an address to post to, and a token in it would get into access logs. A ticket is made
// with the hash of the token, so each gateway with the key accepts it.

const (
	ticketQuery = "ticket"
	ticketTime  = 10 * time.Minute

	ticketHead = 8 + 16 // bytes: time of expiry, and random ones
	ticketMAC  = 16     // bytes
)

// ticketing is the state of tickets in a request.
type ticketing struct {
	tickets *site.Tickets
	scope   string // of the tickets it accepts and makes
	secret  []byte // the hash of its token; nil for none
	valid   bool   // its ticket was used by this request
}

// TakeTickets lets the request accept and make tickets for the address of a source.
func (r *Request) TakeTickets(t *site.Tickets, at, key, source string) {
	r.ticketing = ticketing{tickets: t, scope: strings.Join([]string{at, key, source}, "\x00")}
}

// SetTicketSecret sets the token hash with which the request makes tickets.
func (r *Request) SetTicketSecret(hash []byte) { r.ticketing.secret = hash }

// Ticket returns a query parameter with a ticket for the path, or "" if the request needed no
// token.
func (r *Request) Ticket(path string) (name, value string) {
	if r.ticketing.secret == nil {
		return "", ""
	}
	b := make([]byte, ticketHead, ticketHead+ticketMAC)
	binary.BigEndian.PutUint64(b, uint64(r.Time.Add(ticketTime).Unix()))
	_, _ = rand.Read(b[8:]) // never fails
	return ticketQuery, base64.RawURLEncoding.EncodeToString(append(b, r.ticketing.mac(r.ticketing.secret, path, b)...))
}

// HasTicket reports whether the request has a ticket made with the hash of a token and not used by
// another request.
func (r *Request) HasTicket(hash []byte) bool {
	b, err := base64.RawURLEncoding.DecodeString(r.Query.Get(ticketQuery))
	if r.ticketing.tickets == nil || err != nil || len(b) != ticketHead+ticketMAC {
		return false
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(b)), 0)
	if !hmac.Equal(b[ticketHead:], r.ticketing.mac(hash, r.Path, b[:ticketHead])) || !r.Time.Before(end) {
		return false
	}
	r.ticketing.valid = r.ticketing.valid || r.ticketing.tickets.Use(string(b), end, r.Time)
	return r.ticketing.valid
}

func (t *ticketing) mac(hash []byte, path string, head []byte) []byte {
	m := hmac.New(sha256.New, hash)
	m.Write([]byte("ticket\x00" + t.scope + "\x00" + path + "\x00"))
	m.Write(head)
	return m.Sum(nil)[:ticketMAC]
}

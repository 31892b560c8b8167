// Package webpush sends messages to the subscriptions of browsers and phones with Web
// Push: it encrypts them (RFC 8291), signs the requests (RFC 8292) and sends them to the
// push service of the browser (RFC 8030).
package webpush

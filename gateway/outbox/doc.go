// Package outbox stores what cannot be sent now, and delivers it later.
package outbox

// Package smtp is a server of the Simple Mail Transfer Protocol, as defined in RFC 5321. It is the server of
// github.com/emersion/go-smtp v0.25.1 without what the gateway does not use, which is LMTP and the extensions
// REQUIRETLS, BINARYMIME, DSN, RRVS, DELIVERBY and MT-PRIORITY. Two things are different, because the library
// has no place for them. They are marked with "Changed:".
//
//   - MAIL takes any sender. UPSes, cameras and printers send <UPS>, <camera@> or <Front Door@cam>, which
//     are no addresses, and the library refuses them before the program sees them. Control characters are
//     still refused, and recipients are read as strictly as before.
//   - Server.Refused learns of what the package refuses by itself, for the log.
//
// Its license is in LICENSE. It implements these extensions:
//
//   - 8BITMIME (RFC 1652)
//   - ENHANCEDSTATUSCODES (RFC 2034)
//   - AUTH (RFC 2554)
//   - CHUNKING (RFC 3030)
//   - STARTTLS (RFC 3207)
//   - SMTPUTF8 (RFC 6531)
package smtp

import "io"

// ErrAuthUnknownMechanism is returned by [Session.Auth] for a mechanism that it does not know.
var ErrAuthUnknownMechanism = &SMTPError{
	Code:         504,
	EnhancedCode: EnhancedCode{5, 7, 4},
	Message:      "Unsupported authentication mechanism",
}

// Session is used by servers to respond to an SMTP client.
//
// The methods are called when the remote client issues the matching command.
type Session interface {
	// Discard currently processed message.
	Reset()

	// AuthMechanisms are those that the server offers over TLS.
	AuthMechanisms() []string
	Auth(mech string) (Authentication, error)

	// Set return path for currently processed message.
	Mail(from string) error
	// Add recipient for currently processed message.
	Rcpt(to string) error
	// Set currently processed message contents and send it.
	//
	// r must be consumed before Data returns.
	Data(r io.Reader) error
}

// Authentication is the server side of a mechanism of SASL (RFC 4422).
type Authentication interface {
	// Next returns what to ask the client after its response, and done if it has signed in. The
	// first response is nil if the client has sent none with the command.
	Next(response []byte) (challenge []byte, done bool, err error)
}

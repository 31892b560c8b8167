package xmpp

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"mellium.im/sasl"
	mellium "mellium.im/xmpp"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// signIn returns the stream feature that signs in with the password. It chooses
// the mechanism when the connection is open, because that depends on TLS.
// ctx is the context of the delivery.
func (x *service) signIn(ctx context.Context, c *notifier.Client) mellium.StreamFeature {
	f := mellium.SASL("", x.Password, sasl.ScramSha256)
	if x.security == securityNone {
		f.Necessary = 0 // the library requires TLS otherwise
	}
	f.Negotiate = func(session context.Context, s *mellium.Session, data any) (mellium.SessionState, io.ReadWriter, error) {
		offered, _ := data.([]string)
		mechanisms := slices.DeleteFunc(x.mechanisms(ctx, c, s.ConnectionState()), func(m sasl.Mechanism) bool {
			return !slices.Contains(offered, m.Name)
		})
		if len(mechanisms) == 0 {
			return 0, nil, notifier.Denied(errors.New("the XMPP server offers no way to sign " +
				"in that is safe on this connection; it offers " + strings.Join(offered, ", ")))
		}
		mask, rw, err := mellium.SASL("", x.Password, mechanisms[0]).Negotiate(session, s, data)
		switch {
		case err == nil:
		case isClosed(err):
			err = errors.New("the XMPP server closed the connection during the sign-in")
		case strings.HasSuffix(mechanisms[0].Name, "-PLUS"):
			err = signInError(fmt.Errorf("the XMPP server refused the sign-in: %w; if the password is right, scramplus=no may help", err))
		default:
			err = signInError(fmt.Errorf("the XMPP server refused the sign-in: %w", err))
		}
		return mask, rw, err
	}
	return f
}

// deniedSignIns are the conditions of a failed sign-in that no later attempt can change
// (RFC 6120, section 6.5). Others are temporary-auth-failure and aborted.
var deniedSignIns = []string{
	"account-disabled", "credentials-expired", "encryption-required",
	"invalid-authzid", "invalid-mechanism", "mechanism-too-weak", "not-authorized",
}

// signInError returns an error of the sign-in, marked with [notifier.Denied] if its
// condition says so.
func signInError(err error) error {
	// The type of the library's error is internal. Its text may be the server's.
	failure, ok := errors.AsType[interface {
		error
		TokenReader() xml.TokenReader
	}](err)
	if !ok {
		return err
	}
	for tokens := failure.TokenReader(); ; {
		token, end := tokens.Token()
		if start, ok := token.(xml.StartElement); ok && slices.Contains(deniedSignIns, start.Name.Local) {
			return notifier.Denied(err)
		}
		if end != nil {
			return err
		}
	}
}

// mechanisms returns the mechanisms for a connection, the best one first. It
// leaves out PLAIN, which sends the password itself, if there is no TLS.
func (x *service) mechanisms(ctx context.Context, c *notifier.Client, state tls.ConnectionState) (out []sasl.Mechanism) {
	secure := state.Version != 0
	limited := func(m sasl.Mechanism) sasl.Mechanism { return limitIterations(ctx, c, m) }
	if secure && x.scramPlus && (state.Version >= tls.VersionTLS13 || len(state.TLSUnique) > 0) {
		out = append(out, limited(sasl.ScramSha256Plus), limited(sasl.ScramSha1Plus))
	}
	out = append(out, limited(sasl.ScramSha256), limited(sasl.ScramSha1))
	if secure {
		out = append(out, sasl.Plain)
	}
	return out
}

// The number of hash iterations that a server may ask for. Servers ask for some
// ten thousand.
const (
	maxIterations       = 1_000_000
	maxClientIterations = 100_000 // if the URL is a client's
)

// limitIterations returns a mechanism that checks the server's challenge (RFC
// 5802, section 5.1) before m reads it, because m hashes as often as the
// challenge asks. The hashing counts as work of [notifier.Client.Compute].
func limitIterations(ctx context.Context, c *notifier.Client, m sasl.Mechanism) sasl.Mechanism {
	limit := maxIterations
	if c.ForClient() {
		limit = maxClientIterations
	}
	next := m.Next
	m.Next = func(n *sasl.Negotiator, challenge []byte, data any) (more bool, answer []byte, cache any, err error) {
		for field := range bytes.SplitSeq(challenge, []byte(",")) {
			name, value, ok := strings.Cut(string(field), "=")
			if !ok || len(name) != 1 || value == "" {
				return false, nil, nil, errors.New("the challenge is malformed")
			}
			if i, err := strconv.Atoi(value); name == "i" && (err != nil || i < 1 || i > limit) {
				return false, nil, nil, fmt.Errorf("the challenge asks for more than %d iterations", limit)
			}
		}
		err = c.Compute(ctx, func() (err error) {
			more, answer, cache, err = next(n, challenge, data)
			return err
		})
		return more, answer, cache, err
	}
	return m
}

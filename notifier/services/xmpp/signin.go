package xmpp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"mellium.im/sasl"
	mellium "mellium.im/xmpp"
)

// signIn returns the stream feature that signs in with the password. It chooses
// the mechanism when the connection is open, because that depends on TLS.
func (x *service) signIn() mellium.StreamFeature {
	f := mellium.SASL("", x.Password, sasl.ScramSha256)
	if x.security == securityNone {
		f.Necessary = 0 // the library requires TLS otherwise
	}
	f.Negotiate = func(ctx context.Context, s *mellium.Session, data any) (mellium.SessionState, io.ReadWriter, error) {
		offered, _ := data.([]string)
		mechanisms := slices.DeleteFunc(x.mechanisms(s.ConnectionState()), func(m sasl.Mechanism) bool { return !slices.Contains(offered, m.Name) })
		if len(mechanisms) == 0 {
			return 0, nil, errors.New("the XMPP server offers no way to sign in that is safe on this connection; it offers " + strings.Join(offered, ", "))
		}
		mask, rw, err := mellium.SASL("", x.Password, mechanisms[0]).Negotiate(ctx, s, data)
		switch {
		case err == nil:
		case isClosed(err):
			err = errors.New("the XMPP server closed the connection during the sign-in")
		case strings.HasSuffix(mechanisms[0].Name, "-PLUS"):
			err = fmt.Errorf("the XMPP server refused the sign-in: %w; if the password is right, scramplus=no may help", err)
		default:
			err = fmt.Errorf("the XMPP server refused the sign-in: %w", err)
		}
		return mask, rw, err
	}
	return f
}

// mechanisms returns the mechanisms for a connection, the best one first. It
// leaves out PLAIN, which sends the password itself, if there is no TLS.
func (x *service) mechanisms(state tls.ConnectionState) (out []sasl.Mechanism) {
	secure := state.Version != 0
	if secure && x.scramPlus && (state.Version >= tls.VersionTLS13 || len(state.TLSUnique) > 0) {
		out = append(out, limitIterations(sasl.ScramSha256Plus), limitIterations(sasl.ScramSha1Plus))
	}
	out = append(out, limitIterations(sasl.ScramSha256), limitIterations(sasl.ScramSha1))
	if secure {
		out = append(out, sasl.Plain)
	}
	return out
}

// maxIterations is how many hash iterations a server may ask for. Servers ask
// for some ten thousand.
const maxIterations = 1_000_000

// limitIterations returns a mechanism that checks the server's challenge (RFC
// 5802, section 5.1) before m does, because m would compute any number of
// hashes.
func limitIterations(m sasl.Mechanism) sasl.Mechanism {
	next := m.Next
	m.Next = func(n *sasl.Negotiator, challenge []byte, data any) (bool, []byte, any, error) {
		for field := range bytes.SplitSeq(challenge, []byte(",")) {
			name, value, ok := strings.Cut(string(field), "=")
			if !ok || len(name) != 1 || value == "" {
				return false, nil, nil, errors.New("the challenge is malformed")
			}
			if i, err := strconv.Atoi(value); name == "i" && (err != nil || i < 1 || i > maxIterations) {
				return false, nil, nil, fmt.Errorf("the challenge asks for more than %d iterations", maxIterations)
			}
		}
		return next(n, challenge, data)
	}
	return m
}

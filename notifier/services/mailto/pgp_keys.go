package mailto

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// pgpKeys are the keys for a mail.
type pgpKeys struct {
	public    pgpKey       // from the URL, to encrypt to
	private   pgpKey       // from the URL, to sign with
	directory keyDirectory // keys of recipients
}

// pgpKey is a key in the URL. It is read when the first mail is sent, because
// reading it takes long if it is large.
type pgpKey struct {
	data   []byte
	parsed notifier.Cached[openpgp.EntityList]
}

// read returns the key, or nil if the URL has none.
func (k *pgpKey) read(ctx context.Context, c *notifier.Client) (openpgp.EntityList, error) {
	if k.data == nil {
		return nil, nil
	}
	return k.parsed.Get(ctx, func(ctx context.Context) (openpgp.EntityList, time.Duration, error) {
		keys, err := readKeyRing(ctx, c, k.data)
		if err != nil {
			return nil, 0, err
		}
		return keys[:1], 0, nil
	})
}

var (
	errNotPGP = errors.New("is not an OpenPGP key")
	errLocked = errors.New("has a passphrase; export the key without one")
)

// maxKeyFile is the maximum size of a file with a key, in bytes. Keys with many
// signatures are large.
const maxKeyFile = 1 << 20

// checkKeys reads the keys in the URL and checks that they suit its mode.
func (m *service) checkKeys() (err error) {
	if m.pgpMode() == pgpNone {
		return nil
	}
	m.keys = new(pgpKeys)
	if file := m.pgppub.Content(); file != nil {
		if m.keys.public.data, _, err = readKey(file); err != nil {
			return fmt.Errorf("pgppub %w", err)
		}
	}
	if file := m.pgpprv.Content(); file != nil {
		var first keyPacket
		if m.keys.private.data, first, err = readKey(file); err != nil {
			return fmt.Errorf("pgpprv %w", err)
		}
		switch {
		case !first.private:
			return errors.New("pgpprv is a public key; give the private key")
		case first.locked:
			return fmt.Errorf("pgpprv %w", errLocked)
		}
	}
	switch mode := m.pgpMode(); {
	case mode == pgpEncrypt && !m.pgppub.Given() && !m.wkd:
		return errors.New("pgp=encrypt needs a key; give it as pgppub, or have keys looked up with wkd=yes")
	case mode == pgpSign && !m.pgpprv.Given():
		return errors.New("pgp=sign needs a key; give it as pgpprv")
	}
	return nil
}

// inlineKey returns a key that a URL has in place of a path: in base64, armored
// or not.
func inlineKey(text string) ([]byte, error) {
	clean := strings.NewReplacer(" ", "+", "-", "+", "_", "/", "=", "").Replace(text)
	data, err := base64.RawStdEncoding.DecodeString(clean)
	if err != nil {
		return nil, errors.New("is not base64; export the key and encode it, as in gpg --export ID | base64 -w0")
	}
	_, _, err = readKey(data)
	return data, err
}

// readKey returns the binary form of a key, armored or not, and checks its
// sizes. first is its primary key.
func readKey(file []byte) (data []byte, first keyPacket, err error) {
	if data, err = unarmored(file); err != nil {
		return nil, first, errNotPGP
	}
	packets, err := keyPackets(data)
	if err != nil {
		return nil, first, err
	}
	return data, packets[0], nil
}

// unarmored returns the binary form of one or more keys.
func unarmored(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN PGP")) {
		return data, nil
	}
	block, err := armor.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if block.Type != openpgp.PublicKeyType && block.Type != openpgp.PrivateKeyType {
		return nil, errNotPGP
	}
	return io.ReadAll(block.Body)
}

// readKeyRing reads one or more keys, armored or not. It checks the sizes of their
// numbers before it computes anything with them.
func readKeyRing(ctx context.Context, c *notifier.Client, data []byte) (keys openpgp.EntityList, err error) {
	if data, err = unarmored(data); err != nil {
		return nil, errNotPGP
	}
	packets, err := keyPackets(data)
	if err != nil {
		return nil, err
	}
	if c.ForClient() {
		if len(data) > maxKeySize {
			return nil, &keySizeError{fmt.Sprintf("has more than %d KiB", maxKeySize>>10)}
		}
		for _, p := range packets {
			if err := p.checkForClient(); err != nil {
				return nil, err
			}
		}
	}
	err = c.Compute(ctx, func() error {
		for _, p := range packets {
			if !p.hasPrimes() {
				return errors.New("has factors that are not prime; create another key")
			}
		}
		keys, err = openpgp.ReadKeyRing(bytes.NewReader(data))
		return err
	})
	if err == nil && len(keys) == 0 {
		err = errNotPGP
	}
	return keys, err
}

// pgpMode returns what to do: the parameter pgp or, by default, what the keys
// allow.
func (m *service) pgpMode() int {
	switch {
	case m.pgp != pgpUnset:
		return m.pgp
	case m.pgppub.Given() || m.wkd:
		return pgpEncrypt
	case m.pgpprv.Given():
		return pgpSign
	}
	return pgpNone
}

package mailto

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
)

// What OpenPGP does to a mail.
const (
	pgpUnset = iota // see pgpMode
	pgpEncrypt
	pgpSign
	pgpNone
)

func (m *service) describePGP(s *notifier.Schema) {
	s.Enum(&m.pgp, "pgp", "", []notifier.Choice{
		{Name: "encrypt", Value: pgpEncrypt, Synonyms: []string{"yes", "true", "on"}},
		{Name: "sign", Value: pgpSign},
		{Name: "no", Value: pgpNone, Synonyms: []string{"0", "none", "false", "off"}},
	}, "what OpenPGP does; default: what the given keys allow")
	s.File(&m.pgppub, "pgppub", "OpenPGP key to encrypt to: path of a file, or base64 of it", maxKeyFile).
		Inline(inlineKey).Secret().Alias("pgpkey")
	s.File(&m.pgpprv, "pgpprv", "OpenPGP key to sign with, without a passphrase: a path, or base64", maxKeyFile).Inline(inlineKey).Secret()
	s.Bool(&m.wkd, "wkd", false, "look recipients' keys up in their Web Key Directory")
}

// protect signs and encrypts the content of a mail (RFC 3156). A mail to sign is
// also encrypted if there are keys of all recipients.
func (m *service) protect(ctx context.Context, c *notifier.Client, rcpt mail.Recipients, content mail.Part) (mail.Part, error) {
	mode := m.pgpMode()
	if mode == pgpNone {
		return content, nil
	}
	signers, err := m.keys.private.read(ctx, c)
	if err != nil {
		return mail.Part{}, fmt.Errorf("pgpprv %w", err)
	}
	if len(signers) > 0 && (signers[0].PrivateKey == nil || signers[0].PrivateKey.Encrypted) {
		return mail.Part{}, fmt.Errorf("pgpprv %w", errLocked)
	}
	keys, err := m.recipientKeys(ctx, c, rcpt)
	switch {
	case err != nil && mode == pgpEncrypt:
		return mail.Part{}, err
	case err == nil && len(keys) > 0:
		// A key has as many signatures to verify as its owner likes.
		if err := c.Compute(ctx, func() error { return checkCanEncrypt(keys) }); err != nil {
			return mail.Part{}, err
		}
		return pgpEncrypted(ctx, c, content, keys, signers), nil
	}
	var signed mail.Part
	err = c.Compute(ctx, func() (err error) {
		signed, err = pgpSigned(content, signers)
		return err
	})
	return signed, err
}

// recipientKeys returns the keys to encrypt to: the one in the URL, or the keys of all
// recipients.
func (m *service) recipientKeys(ctx context.Context, c *notifier.Client, rcpt mail.Recipients) (openpgp.EntityList, error) {
	if m.pgppub.Given() || !m.wkd {
		keys, err := m.keys.public.read(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("pgppub %w", err)
		}
		return keys, nil
	}
	var keys openpgp.EntityList
	for i, a := range rcpt.All() {
		key, err := m.keys.directory.lookUp(ctx, c, a.Address)
		if err != nil {
			return nil, fmt.Errorf("the key of recipient %d: %w", i+1, err)
		}
		keys = append(keys, key...)
	}
	return keys, nil
}

func checkCanEncrypt(keys openpgp.EntityList) error {
	for i, key := range keys {
		if _, err := key.EncryptionKeyWithError(time.Now(), nil); err != nil {
			return fmt.Errorf("key %d of %d cannot encrypt: %w", i+1, len(keys), err)
		}
	}
	return nil
}

// pgpEncrypted returns the content of a mail, encrypted (RFC 3156, section 4). It
// is encrypted while it is written. Work with keys, at the beginning and the end,
// is done within [notifier.Client.Compute]; what it writes goes to the network
// afterwards.
func pgpEncrypted(ctx context.Context, c *notifier.Client, content mail.Part, keys, signers openpgp.EntityList) mail.Part {
	secret := mail.Part{
		Header: "Content-Type: application/octet-stream; name=\"encrypted.asc\"\r\nContent-Disposition: inline; filename=\"encrypted.asc\"\r\n",
		Body: func(w io.Writer) error {
			out := &heldWriter{w: w}
			armored, err := armor.Encode(out, openpgp.MessageType, nil)
			if err != nil {
				return err
			}
			var plain io.WriteCloser
			err = out.compute(ctx, c, func() (err error) {
				plain, err = openpgp.Encrypt(armored, keys, nil, signers, nil, nil)
				return err
			})
			if err != nil {
				return fmt.Errorf("encrypting: %w", err)
			}
			if err := content.Write(plain); err != nil {
				return err
			}
			if err := out.compute(ctx, c, func() error { return plain.Close() }); err != nil { // signs
				return fmt.Errorf("encrypting: %w", err)
			}
			return armored.Close()
		},
	}
	return mail.Multipart(`encrypted; protocol="application/pgp-encrypted"`,
		mail.RawPart("Content-Type: application/pgp-encrypted\r\n", "Version: 1\r\n"), secret)
}

// heldWriter is a writer to the network for work within [notifier.Client.Compute]: it holds back
// the output until the work is done.
type heldWriter struct {
	w    io.Writer
	hold bool
	held bytes.Buffer
}

func (h *heldWriter) Write(p []byte) (int, error) {
	if h.hold {
		return h.held.Write(p)
	}
	return h.w.Write(p)
}

// compute runs f within c.Compute and then writes the output of f to h.
func (h *heldWriter) compute(ctx context.Context, c *notifier.Client, f func() error) error {
	h.hold = true
	err := c.Compute(ctx, f)
	h.hold = false
	if err != nil {
		return err
	}
	_, err = h.held.WriteTo(h.w)
	return err
}

// pgpSigned returns the content of a mail with a signature (RFC 3156, section 5).
func pgpSigned(content mail.Part, signers openpgp.EntityList) (mail.Part, error) {
	var signature bytes.Buffer
	w, err := openpgp.DetachSignWriter(&signature, signers, nil)
	if err != nil {
		return mail.Part{}, fmt.Errorf("signing: %w", err)
	}
	if err := content.Write(w); err != nil {
		return mail.Part{}, fmt.Errorf("signing: %w", err)
	}
	if err := w.Close(); err != nil {
		return mail.Part{}, fmt.Errorf("signing: %w", err)
	}
	hash, armored, err := pgpArmor(signature.Bytes())
	if err != nil {
		return mail.Part{}, fmt.Errorf("signing: %w", err)
	}
	return mail.Multipart(`signed; protocol="application/pgp-signature"; micalg=pgp-`+hash, content,
		mail.RawPart("Content-Type: application/pgp-signature; name=\"signature.asc\"\r\n"+
			"Content-Disposition: attachment; filename=\"signature.asc\"\r\n", armored)), nil
}

// pgpArmor returns a signature as text, and the name of its hash.
func pgpArmor(signature []byte) (hash, armored string, err error) {
	p, err := pgppacket.Read(bytes.NewReader(signature))
	if err != nil {
		return "", "", err
	}
	if s, ok := p.(*pgppacket.Signature); ok {
		hash = strings.ToLower(strings.ReplaceAll(s.Hash.String(), "-", ""))
	}
	var b bytes.Buffer
	w, err := armor.Encode(&b, openpgp.SignatureType, nil)
	if err != nil {
		return "", "", err
	}
	if _, err := w.Write(signature); err != nil {
		return "", "", err
	}
	if err := w.Close(); err != nil {
		return "", "", err
	}
	return hash, strings.ReplaceAll(b.String(), "\n", "\r\n") + "\r\n", nil
}

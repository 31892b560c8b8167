package mailto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"

	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
)

// Tags of packets that hold a key (RFC 9580, section 5).
const (
	tagPrivate       = 5
	tagPublic        = 6
	tagPrivateSubkey = 7
	tagPublicSubkey  = 14
)

// Sizes of keys in bits.
const (
	maxRSABits           = 8192
	maxClientSigningBits = 4096 // of a client's RSA key that signs, once for each mail
	maxDiscreteLogBits   = 4096 // of the numbers of DSA and ElGamal
)

// maxKeyPackets is the maximum number of keys and subkeys in a key ring.
const maxKeyPackets = 64

// keySizeError is returned for a key that is not read because computing with it
// takes too long.
type keySizeError struct{ reason string }

func (e *keySizeError) Error() string { return e.reason + "; use a key on Curve25519 or an RSA key" }

// keyPacket is a packet with a key, as far as its sizes are concerned.
type keyPacket struct {
	private bool // the packet has a private key
	locked  bool // by a passphrase
	rsa     bool
	dlog    bool // DSA or ElGamal
	bits    int  // of an RSA key
	primes  [][]byte
}

// keyPackets returns the keys and subkeys of a key ring, the primary key first.
// It decodes without computing anything, and refuses keys that are too large
// for any URL.
func keyPackets(data []byte) (out []keyPacket, err error) {
	packets := pgppacket.NewOpaqueReader(bytes.NewReader(data))
	for {
		p, err := packets.Next()
		if errors.Is(err, io.EOF) && len(out) > 0 {
			return out, nil
		}
		if err != nil {
			return nil, errNotPGP
		}
		switch p.Tag {
		case tagPrivate, tagPublic, tagPrivateSubkey, tagPublicSubkey:
		default:
			if len(out) == 0 {
				return nil, errNotPGP
			}
			continue
		}
		key, err := readKeyPacket(p.Contents, p.Tag == tagPrivate || p.Tag == tagPrivateSubkey)
		if err != nil {
			return nil, err
		}
		if out = append(out, key); len(out) > maxKeyPackets {
			return nil, &keySizeError{fmt.Sprintf("has more than %d subkeys", maxKeyPackets)}
		}
	}
}

// readKeyPacket reads the content of a packet (RFC 9580, section 5.5).
func readKeyPacket(content []byte, private bool) (k keyPacket, err error) {
	k.private = private
	head := 6 // version, time, algorithm
	if len(content) < head {
		return k, errNotPGP
	}
	version, algorithm := content[0], content[5]
	if version > 4 {
		head += 4 // length of the public numbers
	}
	if version < 4 || version > 6 || len(content) < head {
		return k, errNotPGP
	}
	rest := content[head:]
	var numbers [][]byte
	switch algorithm {
	case 1, 2, 3: // RSA
		if numbers, rest, err = readNumbers(rest, 2, maxRSABits); err != nil {
			return k, err
		}
		k.rsa, k.bits = true, 8*len(numbers[0])
	case 16, 20, 17: // ElGamal: p, g, y; DSA: p, q, g, y
		k.dlog = true
		n := 3
		if algorithm == 17 {
			n = 4
		}
		if _, rest, err = readNumbers(rest, n, maxDiscreteLogBits); err != nil {
			return k, err
		}
	case 18, 19, 22: // curves with a name and a point
		if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
			return k, errNotPGP
		}
		if _, rest, err = readNumbers(rest[1+int(rest[0]):], 1, maxRSABits); err != nil {
			return k, err
		}
		if algorithm == 18 { // parameters of the key derivation
			if len(rest) == 0 || len(rest) < 1+int(rest[0]) {
				return k, errNotPGP
			}
			rest = rest[1+int(rest[0]):]
		}
	default: // keys of a fixed size
		return k, nil
	}
	if !private {
		return k, nil
	}
	if len(rest) == 0 {
		return k, errNotPGP
	}
	const onCard = 101 // GnuPG's mark of a private key that is elsewhere
	k.locked = rest[0] != 0 && (len(rest) < 3 || rest[2] != onCard)
	switch {
	case rest[0] != 0:
	case k.rsa: // d, p, q, u
		if version != 4 {
			return k, errNotPGP
		}
		if numbers, _, err = readNumbers(rest[1:], 4, k.bits); err != nil {
			return k, err
		}
		k.primes = numbers[1:3]
	case k.dlog:
		if version != 4 {
			return k, errNotPGP
		}
		if _, _, err = readNumbers(rest[1:], 1, maxDiscreteLogBits); err != nil {
			return k, err
		}
	}
	return k, nil
}

// readNumbers reads n numbers (RFC 9580, section 3.2) of at most maxBits bits.
func readNumbers(data []byte, n, maxBits int) (numbers [][]byte, rest []byte, err error) {
	for range n {
		if len(data) < 2 {
			return nil, nil, errNotPGP
		}
		bits := int(binary.BigEndian.Uint16(data))
		if bits > maxBits {
			return nil, nil, &keySizeError{fmt.Sprintf("has numbers of %d bits, and at most %d are allowed", bits, maxBits)}
		}
		size := (bits + 7) / 8
		if len(data) < 2+size {
			return nil, nil, errNotPGP
		}
		numbers = append(numbers, data[2:2+size])
		data = data[2+size:]
	}
	return numbers, data, nil
}

// checkForClient returns an error if a client must not use the key.
func (k keyPacket) checkForClient() error {
	switch {
	case k.dlog:
		return &keySizeError{"has a DSA or ElGamal key, and those in clients' URLs are refused"}
	case k.rsa && k.private && k.bits > maxClientSigningBits:
		return &keySizeError{fmt.Sprintf("has %d bits, and private keys in clients' URLs have at most %d", k.bits, maxClientSigningBits)}
	}
	return nil
}

// hasPrimes reports whether the factors of a private RSA key are prime. It takes
// long if they are large.
func (k keyPacket) hasPrimes() bool {
	const rounds = 2 // and a Baillie-PSW test; an error harms only the owner of the key
	for _, p := range k.primes {
		if !new(big.Int).SetBytes(p).ProbablyPrime(rounds) {
			return false
		}
	}
	return true
}

package services

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/chattext"
)

var _ = notifier.Register[sogs]()

// sogs posts to rooms of a Session open group server.
type sogs struct {
	notifier.Server
	publicKey string
	seed      string
	rooms     []string
}

func (g *sogs) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Session Open Group Server", "https://github.com/oxen-io/session-pysogs"
	s.Setup = "public_key is in the link to a room, after ?public_key=; " +
		"seed is 64 hex digits that identify the sender, for example from openssl rand -hex 32."
	s.Groups(notifier.GroupChat)
	s.Words("session messenger", "oxen", "lokinet")
	s.URL("session[s]|sogs://{public_key}:{seed}@{host}[:{port}]/{targets...}")
	s.Limits = markup.Limits{Body: 2000}
	// A mention is @ and the ID of an account.
	s.Foreign = &notifier.ForeignText{Mentions: chattext.BreakMentions}
	s.Server(&g.Server)
	s.String(&g.publicKey, "public_key", "", "public key of the server, 64 hex digits").
		Match(`^[0-9a-f]{64}$`).Example(strings.Repeat("b", 64)).Alias("key")
	s.Secret(&g.seed, "seed", "secret seed of the sender's key, 64 hex digits").Match(`^[0-9a-f]{64}$`).
		Example("fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210")
	s.List(&g.rooms, "targets", "rooms").Alias("to").Normalize(sogsRoom).Example("ops")
	s.Param("host").Example("sogs.example.com")
	s.Param("public_key").Example("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef")
}

var sogsRoomPattern = lazyregexp.New(`^[a-z0-9_-]{1,64}$`)

func sogsRoom(s string) (string, error) {
	if s = strings.ToLower(s); !sogsRoomPattern.MatchString(s) {
		return "", errors.New("is not the name of a room")
	}
	return s, nil
}

// Finish turns on TLS for the scheme sogs.
func (g *sogs) Finish(s *notifier.Schema) error {
	g.Secure = g.Secure || s.Scheme == "sogs"
	return nil
}

func (g *sogs) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	server, err := hex.DecodeString(g.publicKey)
	if err != nil {
		return fmt.Errorf("reading public_key: %w", err)
	}
	seed, err := hex.DecodeString(g.seed)
	if err != nil {
		return errors.New("reading seed: it is not hexadecimal")
	}
	key := ed25519.NewKeyFromSeed(seed)
	data := sogsMessage(m.Body)
	body, err := json.Marshal(map[string][]byte{"data": data, "signature": ed25519.Sign(key, data)})
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return c.Steps.Each(ctx, g.rooms, func(ctx context.Context, room string) error {
		path := "/room/" + room + "/message"
		return c.Post(ctx, g.URL()+path, notifier.Bytes("application/json", body), sogsSign(server, key, path, body))
	})
}

// sogsSign returns the headers that authenticate a request. The signature covers the
// server's key, a nonce, the time, the method, the path and the hash of the body.
func sogsSign(server []byte, key ed25519.PrivateKey, path string, body []byte) map[string]string {
	nonce := make([]byte, 16)
	rand.Read(nonce) // never fails
	now := strconv.FormatInt(time.Now().Unix(), 10)
	hash := blake2b.Sum512(body)
	text := append([]byte{}, server...)
	text = append(text, nonce...)
	text = append(text, now+"POST"+path...)
	text = append(text, hash[:]...)
	return map[string]string{
		// 00 marks a key that is not blinded.
		"X-SOGS-Pubkey":    "00" + hex.EncodeToString(key.Public().(ed25519.PublicKey)),
		"X-SOGS-Nonce":     base64.StdEncoding.EncodeToString(nonce),
		"X-SOGS-Timestamp": now,
		"X-SOGS-Signature": base64.StdEncoding.EncodeToString(ed25519.Sign(key, text)),
	}
}

// sogsMessage encodes a text for Session: as the field body of a DataMessage in a
// Content, both protocol buffers, followed by the byte that begins the padding.
func sogsMessage(text string) []byte {
	return append(sogsField(sogsField([]byte(text))), 0x80)
}

// sogsField returns field 1 of a protocol buffer, of type bytes.
func sogsField(data []byte) []byte {
	const tag = 1<<3 | 2
	return append(binary.AppendUvarint([]byte{tag}, uint64(len(data))), data...)
}

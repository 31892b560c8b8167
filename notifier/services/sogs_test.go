package services

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"golang.org/x/crypto/blake2b"
)

// The signature of a request is valid.
func TestSogsSign(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{0xaa}, 32))
	server, body := bytes.Repeat([]byte{0xbb}, 32), []byte(`{"data":""}`)
	h := sogsSign(server, key, "/room/lobby/message", body)
	public, err := hex.DecodeString(h["X-SOGS-Pubkey"])
	if err != nil || len(public) != 33 || public[0] != 0 {
		t.Fatalf("X-SOGS-Pubkey is %q", h["X-SOGS-Pubkey"])
	}
	nonce, err := base64.StdEncoding.DecodeString(h["X-SOGS-Nonce"])
	if err != nil || len(nonce) != 16 {
		t.Fatalf("X-SOGS-Nonce is %q", h["X-SOGS-Nonce"])
	}
	signature, err := base64.StdEncoding.DecodeString(h["X-SOGS-Signature"])
	if err != nil {
		t.Fatal(err)
	}
	hash := blake2b.Sum512(body)
	signed := bytes.Join([][]byte{server, nonce, []byte(h["X-SOGS-Timestamp"] + "POST/room/lobby/message"), hash[:]}, nil)
	if !ed25519.Verify(public[1:], signed, signature) {
		t.Error("the signature is invalid")
	}
	if again := sogsSign(server, key, "/room/lobby/message", body); again["X-SOGS-Nonce"] == h["X-SOGS-Nonce"] {
		t.Error("two requests have the same nonce")
	}
}

package services

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// signIn finds the account's server by the handle and creates a session there. See
// https://atproto.com/guides/identity.
func (b *bluesky) signIn(ctx context.Context, c *notifier.Client) (s blueskySession, life time.Duration, err error) {
	if s.DID, err = b.resolveHandle(ctx, c); err != nil {
		return s, 0, fmt.Errorf("looking up the handle: %w", err)
	}
	if s.Server, err = b.findServer(ctx, c, s.DID); err != nil {
		return s, 0, fmt.Errorf("looking up the account's server: %w", err)
	}
	var answer struct{ AccessJWT string }
	err = s.call(ctx, c, "server.createSession", notifier.JSON(map[string]string{"identifier": s.DID, "password": b.password}), &answer)
	if err == nil && answer.AccessJWT == "" {
		err = errors.New("the answer has no token")
	}
	if err != nil {
		return s, 0, fmt.Errorf("signing in: %w", err)
	}
	s.Token = answer.AccessJWT
	return s, time.Hour, nil
}

// resolveHandle returns the DID (decentralized identifier) of the account.
func (b *bluesky) resolveHandle(ctx context.Context, c *notifier.Client) (string, error) {
	handle := b.user
	if !strings.Contains(handle, ".") {
		handle += ".bsky.social"
	}
	var answer struct{ DID string }
	err := b.fetch(ctx, c, "https://public.api.bsky.app/xrpc/com.atproto.identity.resolveHandle?handle="+url.QueryEscape(handle), &answer)
	if err == nil && answer.DID == "" {
		err = errors.New("no account has this handle")
	}
	return answer.DID, err
}

// findServer returns the address of the account's server from its DID document.
func (b *bluesky) findServer(ctx context.Context, c *notifier.Client, did string) (string, error) {
	address := "https://plc.directory/" + did
	if domain, found := strings.CutPrefix(did, "did:web:"); found {
		address = "https://" + domain + "/.well-known/did.json"
	} else if !strings.HasPrefix(did, "did:plc:") {
		return "", errors.New("the DID is neither a did:plc nor a did:web")
	}
	var document struct {
		Service []struct {
			Type     string
			Endpoint string `json:"serviceEndpoint"`
		}
	}
	if err := b.fetch(ctx, c, address, &document); err != nil {
		return "", err
	}
	for _, s := range document.Service {
		if s.Type == "AtprotoPersonalDataServer" && strings.HasPrefix(s.Endpoint, "https://") {
			return strings.TrimRight(s.Endpoint, "/"), nil
		}
	}
	return "", errors.New("the DID document names no server")
}

// fetch reads the JSON at address into answer.
func (b *bluesky) fetch(ctx context.Context, c *notifier.Client, address string, answer any) error {
	return c.DoJSON(ctx, &notifier.Request{
		URL:    address,
		Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
	}, answer)
}

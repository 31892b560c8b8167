package saved

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// IDOf returns a function that returns the ID of a URL. The ID is a keyed hash,
// so that nobody can guess the URL from it.
func (s *Keys) IDOf(ctx context.Context) func(notifier.Target) *string {
	key, err := s.Store.IDKey(ctx)
	if err != nil {
		s.Log.Error("URLs are listed without IDs", zap.Error(err))
		return func(notifier.Target) *string { return nil }
	}
	return func(t notifier.Target) *string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(t.URL()))
		id := hex.EncodeToString(mac.Sum(nil)[:16])
		return &id
	}
}

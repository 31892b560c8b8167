package saved

import (
	"context"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

// Describe calls set with a saved key, or returns why it cannot be used. A key that is
// not in use is read, and not kept in memory.
func (s *Keys) Describe(ctx context.Context, name string, set func(*site.Key)) (problem string) {
	s.mu.Lock()
	used := s.Keys[name] != nil
	s.mu.Unlock()
	if used {
		if k, err := s.find(ctx, name); err == nil {
			set(k)
			return ""
		}
	}
	c, err := s.Store.Load(ctx, name)
	if err != nil {
		return "It cannot be read."
	}
	// Files that it includes are not fetched for the list.
	k, _, err := s.ParseWith(ctx, name, c.Format, c.Text, func(context.Context, string) ([]byte, error) { return nil, nil })
	if err != nil {
		return "It has mistakes, or only includes others."
	}
	k.ID = c.ID
	set(k)
	s.ReleaseTargets(k)
	return ""
}

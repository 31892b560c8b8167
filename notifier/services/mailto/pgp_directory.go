package mailto

import (
	"context"
	"crypto/sha1" //nolint:gosec // part of a key's address; nothing is signed
	"encoding/base32"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
)

const (
	// keyLifetime is the time for which a key is used before it is looked up
	// again.
	keyLifetime = time.Hour

	// maxKeySize is the maximum size of a key in bytes.
	maxKeySize = 64 << 10
)

// keyDirectory looks keys up in the Web Key Directories of their owners' domains
// (draft-koch-openpgp-webkey-service).
type keyDirectory struct {
	mu    sync.Mutex
	cache map[string]cachedKey // by address
}

type cachedKey struct {
	key   openpgp.EntityList
	until time.Time
}

var errNoKey = errors.New("it is not in the Web Key Directory")

// lookUp returns the key of an address.
func (d *keyDirectory) lookUp(ctx context.Context, c *notifier.Client, address string) (openpgp.EntityList, error) {
	d.mu.Lock()
	found, ok := d.cache[address]
	d.mu.Unlock()
	if ok && time.Now().Before(found.until) {
		return found.key, nil
	}
	err := errNoKey
	for _, u := range directoryURLs(address) {
		answer, failed := c.Do(ctx, &notifier.Request{URL: u})
		if failed != nil || len(answer.Body) > maxKeySize {
			continue
		}
		keys, failed := readKeyRing(ctx, c, answer.Body)
		if tooLarge, ok := errors.AsType[*keySizeError](failed); ok {
			err = tooLarge
			continue
		}
		if failed != nil {
			err = errors.New("the Web Key Directory has something else than an OpenPGP key")
			continue
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.cache == nil {
			d.cache = map[string]cachedKey{}
		}
		d.cache[address] = cachedKey{keys[:1], time.Now().Add(keyLifetime)}
		return keys[:1], nil
	}
	return nil, err
}

var zbase32 = base32.NewEncoding("ybndrfg8ejkmcpqxot1uwisza345h769").WithPadding(base32.NoPadding)

// directoryURLs returns the URLs where the key of an address may be: on the host
// openpgpkey of the domain (the advanced method), or on the domain itself.
func directoryURLs(address string) []string {
	local, domain, _ := strings.Cut(address, "@")
	sum := sha1.Sum([]byte(strings.ToLower(local))) //nolint:gosec // see above
	key := "/hu/" + zbase32.EncodeToString(sum[:]) + "?l=" + url.QueryEscape(local)
	return []string{
		"https://openpgpkey." + domain + "/.well-known/openpgpkey/" + domain + key,
		"https://" + domain + "/.well-known/openpgpkey" + key,
	}
}

package queue

import (
	"context"
	"errors"
	"time"
)

// resealEvery is how often the store is asked to seal again what was sealed under an older secret.
const resealEvery = time.Minute

// reseal seals again what was sealed under an older secret, at the start and then about every
// minute. It logs once that nothing needs an older secret any more.
func (q *Queue) reseal() {
	q.resealOnce()
	q.every(resealEvery, func(int) { q.resealOnce() })
}

func (q *Queue) resealOnce() {
	r, ok := q.store.(Resealer)
	if !ok {
		return
	}
	old, err := r.Reseal(q.ctx)
	if err != nil {
		q.check(err)
		return
	}
	before := q.old.Swap(&old)
	if old.Set && !old.Needed() && (before == nil || *before != old) {
		q.options.Load().Logger.Info("nothing in the queue needs an old secret any more; on all gateways, remove the old ones from secret")
	}
}

// OldSecrets returns what was found when something was last looked for that needs an older secret, and
// reports whether that has happened.
func (q *core) OldSecrets() (old OldSecrets, known bool) {
	if p := q.old.Load(); p != nil {
		return *p, true
	}
	return old, false
}

// errNoSecrets is returned for a store that does not seal.
var errNoSecrets = errors.New("the store of the queue does not seal what it keeps")

// SetSecrets makes the store seal under a secret, and open what was sealed under that or under older
// ones. After an error, nothing has changed.
func (q *core) SetSecrets(ctx context.Context, secret string, older ...string) error {
	r, ok := q.store.(Resealer)
	if !ok {
		return errNoSecrets
	}
	if err := r.SetSecrets(ctx, secret, older...); err != nil {
		return err
	}
	q.old.Store(nil)
	return nil
}

package queue

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// resealEvery is how often the store is asked to seal again what was sealed under an older secret.
const resealEvery = time.Minute

// reseal seals again what was sealed under an older secret, at the start and then about every
// minute. It logs at the start whether something needs one, and once that nothing does any more.
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
	log := q.options.Load().Logger
	switch {
	case !old.Set:
	case old.Needed() && before == nil:
		log.Info("the queue still needs an old secret: keep it in the configuration, until the log says that it can be removed",
			zap.Int("records", old.Records), zap.Bool("in_use", old.Used))
	case !old.Needed() && (before == nil || before.Needed()):
		log.Info("nothing in the queue needs an old secret any more; when all gateways have the new one before it, " +
			"the old secret can be removed from the configuration")
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

package admin

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"
)

// BackupKeyHeader is the header of a back-up that names the file with the key of
// the queue. The back-up does not contain the key.
const BackupKeyHeader = "Queue-Key-File"

// backupTimeout bounds how long a client may take to receive a part of a
// back-up.
const backupTimeout = time.Minute

// The errors for a back-up of a queue that is in no folder.
var (
	errBackupPostgres = errors.New("the queue is in PostgreSQL: back up the tables notify_queue_* " +
		"with the tools of the database, for example pg_dump, and keep the secret of the queue")
	errBackupGuest = errors.New("the queue is in the store of another module: back it up with what that module has for it, and keep the " +
		"secret of the queue")
)

// serveBackup responds with a copy of the queue, without the key.
func serveBackup(w http.ResponseWriter, r *http.Request) error {
	q, err := runningQueue()
	if err != nil {
		return err
	}
	if q.Outbox.Store == nil {
		if q.Outbox.Current().QueueSettings.Module != "" {
			return apiError(http.StatusNotImplemented, errBackupGuest)
		}
		return apiError(http.StatusNotImplemented, errBackupPostgres)
	}
	w.Header().Set("Content-Type", "application/x-tar")
	if q.Outbox.KeyFile != "" {
		w.Header().Set(BackupKeyHeader, url.PathEscape(q.Outbox.KeyFile))
	}
	out := &backupWriter{w: w, c: http.NewResponseController(w)}
	err = q.Outbox.Store.Backup(r.Context(), out)
	switch {
	case err == nil:
		return nil
	case !out.begun:
		w.Header().Del(BackupKeyHeader)
		return apiError(http.StatusServiceUnavailable, err)
	}
	q.Outbox.Log.Error("a back-up of the queue is not complete", zap.Error(err))
	panic(http.ErrAbortHandler) // so that the client does not take it for complete
}

// backupWriter writes a response with a deadline for each part.
type backupWriter struct {
	w     http.ResponseWriter
	c     *http.ResponseController
	begun bool
}

// Write implements [io.Writer].
func (b *backupWriter) Write(p []byte) (int, error) {
	b.begun = true
	if err := b.c.SetWriteDeadline(time.Now().Add(backupTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return b.w.Write(p)
}

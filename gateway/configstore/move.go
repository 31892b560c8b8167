package configstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// A key that is moved keeps its ID and its first name, under which its records are stored. A
// message that waits in a queue has the name that the key had when it arrived. So each name from
// which keys were moved has an object that leads to them.

// move leads from a former name to its key.
type move struct {
	ID    string `json:"id,omitempty"`
	First string `json:"first"`
	To    string `json:"to"` // the next name of the key
}

// is reports whether o is the object of the moved key.
func (m *move) is(o *object) bool { return m.ID == o.ID && m.First == o.first() }

// first returns the first name of the key.
func (o *object) first() string {
	if len(o.Names) > 0 {
		return o.Names[0]
	}
	return o.Key
}

// Move gives a key another name. Its text, format, times, tokens and ID stay the same. The error is
// [ErrNotFound] if there is no such key, and [ErrExists] if another one has the name. The same call
// finishes a move that was interrupted by an error or the end of the process.
func (s *Store) Move(ctx context.Context, from, to string) error {
	return s.write(ctx, storageTimeout, func(ctx context.Context) error {
		o, _, err := s.readObject(ctx, from)
		if err != nil {
			return err
		}
		if left, err := s.isLeft(ctx, from, &o); err != nil {
			return err
		} else if left {
			return s.endMove(ctx, from, to, &o)
		}
		switch _, _, err := s.read(ctx, to); {
		case err == nil || errors.Is(err, ErrDamaged):
			return ErrExists
		case !errors.Is(err, ErrNotFound):
			return err
		}
		moved, err := s.renamed(from, to, o)
		if err != nil {
			return err
		}
		// The way to the key and the mark come first, so that nobody looks for the key in vain.
		if err := s.addMove(ctx, from, move{o.ID, o.first(), to}); err != nil {
			return err
		}
		if len(o.Tokens) > 0 {
			if err := s.storage.Store(ctx, s.folder.markName(to), []byte("{}")); err != nil {
				return fmt.Errorf("saving the tokens: %w", err)
			}
		}
		if err := s.storeObject(ctx, to, moved); err != nil { // from now on, the key has its new name
			return err
		}
		if err := s.removeMove(ctx, to, &moved); err != nil {
			return err
		}
		return s.remove(ctx, from)
	})
}

// renamed returns the object of a key for another name.
func (s *Store) renamed(from, to string, o object) (object, error) {
	text, err := s.textOf(from, o)
	if err != nil {
		return o, err
	}
	names := append([]string{o.first()}, slices.DeleteFunc(append(slices.Clone(o.Names), from),
		func(name string) bool { return name == o.first() || name == to })...)
	o.Names, o.Key = names, to
	o.Moves++
	s.seal(to, &o, text)
	return o, nil
}

// isLeft reports whether the object of a key is left over from an interrupted move to another name.
func (s *Store) isLeft(ctx context.Context, key string, o *object) (bool, error) {
	moves, err := s.moves(ctx, key)
	i := slices.IndexFunc(moves, func(m move) bool { return m.is(o) })
	if err != nil || i < 0 {
		return false, err
	}
	now, err := s.follow(ctx, moves[i])
	return now != nil && now.Moves > o.Moves, err
}

// endMove removes the rest of an interrupted move from a name. The error is [ErrNotFound] if the
// key was moved to another name than to.
func (s *Store) endMove(ctx context.Context, from, to string, o *object) error {
	there, _, err := s.readObject(ctx, to)
	if err == nil && (there.ID != o.ID || there.first() != o.first()) {
		err = ErrNotFound
	}
	return errors.Join(s.remove(ctx, from), err)
}

// moves returns the keys that were moved from a name.
func (s *Store) moves(ctx context.Context, name string) (all []move, err error) {
	content, err := s.storage.Load(ctx, s.folder.movedName(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading where a key was moved: %w", err)
	}
	return all, nil
}

// addMove records that a key was moved from a name.
func (s *Store) addMove(ctx context.Context, from string, m move) error {
	all, err := s.moves(ctx, from)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(o move) bool { return o.ID == m.ID && o.First == m.First })
	return s.storeMoves(ctx, from, append(all, m))
}

// removeMove removes the way from a former name to a key.
func (s *Store) removeMove(ctx context.Context, from string, o *object) error {
	all, err := s.moves(ctx, from)
	if err != nil || !slices.ContainsFunc(all, func(m move) bool { return m.is(o) }) {
		return err
	}
	return s.storeMoves(ctx, from, slices.DeleteFunc(all, func(m move) bool { return m.is(o) }))
}

func (s *Store) storeMoves(ctx context.Context, from string, all []move) (err error) {
	if len(all) == 0 {
		err = s.storage.Delete(ctx, s.folder.movedName(from))
	} else {
		var content []byte
		if content, err = json.Marshal(all); err == nil {
			err = s.storage.Store(ctx, s.folder.movedName(from), content)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("saving where a key was moved: %w", err)
	}
	s.index.setMoved(from, len(all) > 0)
	return nil
}

// forgetNames removes a deleted key from the objects of its former names.
func (s *Store) forgetNames(ctx context.Context, o *object) error {
	for _, name := range o.Names {
		old, _, err := s.readObject(ctx, name)
		if err == nil && name != o.Key && old.ID == o.ID && old.first() == o.first() {
			if err := s.remove(ctx, name); err != nil {
				return err
			}
		}
		if err := s.removeMove(ctx, name, o); err != nil {
			return err
		}
	}
	return nil
}

// Moved returns the present names of the keys that had a name before and have another now. It reads
// the storage, so that it is right while another process moves a key.
func (s *Store) Moved(ctx context.Context, name string) (now []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, storageTimeout)
	defer cancel()
	moves, err := s.moves(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, m := range moves {
		o, err := s.follow(ctx, m)
		if err != nil {
			return nil, err
		}
		if o != nil && o.Key != name {
			s.index.found(o.Key)
			now = append(now, o.Key)
		}
	}
	return now, nil
}

// MayHaveMoved reports whether Moved may return a name, without reading the storage.
func (s *Store) MayHaveMoved(name string) bool { return s.index.mayBeMoved(name) }

// follow returns the object of a moved key, or nil if the key is gone. During a move the key has
// two objects, and the newer one counts. follow looks at each name once, so that it ends even if
// somebody has changed the objects.
func (s *Store) follow(ctx context.Context, m move) (now *object, err error) {
	for seen := map[string]bool{}; !seen[m.To]; {
		seen[m.To] = true
		o, _, err := s.readObject(ctx, m.To)
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		if err == nil && m.is(&o) && (now == nil || o.Moves > now.Moves) {
			now = &o
		}
		moves, err := s.moves(ctx, m.To)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(moves, func(o move) bool { return o.ID == m.ID && o.First == m.First }); i >= 0 {
			m = moves[i]
		}
	}
	return now, nil
}

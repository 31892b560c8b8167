package migrate

import (
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/words"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier/appriseconfig"
)

// savedConfig is a configuration that is saved under a key of an Apprise API.
type savedConfig struct {
	key    string
	format string // text or yaml
	text   []byte
}

// The files of an Apprise API, with their formats, in the order in which it
// looks for them.
var (
	simpleFiles = []configFile{{".cfg", "text"}, {".yml", "yaml"}}
	hashFiles   = []configFile{{".text", "text"}, {".yaml", "yaml"}}
)

type configFile struct{ extension, format string }

// reader reads the saved configurations of an Apprise API.
type reader struct {
	env    environment
	report *report
	locked bool // the Apprise API asks for logins
}

// readFolder reads the configuration folder of an Apprise API. Without keys it
// reads every key of a folder in simple mode, and the default key of one in hash
// mode.
func (r *reader) readFolder(dir, secretKey string, keys []string) ([]savedConfig, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration folder: %w", err)
	}
	var simple []string
	for _, e := range entries {
		if !e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			simple = append(simple, e.Name())
		}
	}
	hashed, err := filepath.Glob(filepath.Join(escapeGlob(dir), "[0-9a-f][0-9a-f]", "*"))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration folder: %w", err)
	}
	hashed = slices.DeleteFunc(hashed, func(path string) bool { return !hashName.MatchString(filepath.Base(path)) })

	if mode := r.env.mode(); mode == simpleMode || mode == "" && len(hashed) == 0 {
		return r.readSimple(dir, simple, keys), nil
	}
	for _, name := range simple {
		r.report.note("%s: Apprise API does not read it in hash mode; set APPRISE_STATEFUL_MODE=simple to move it", name)
	}
	return r.readHashed(dir, hashed, secretKey, keys)
}

// escapeGlob makes filepath.Glob take a path as it is.
func escapeGlob(path string) string { return globSpecial.ReplaceAllString(path, "[$0]") }

var globSpecial = lazyregexp.New(`[*?\[]`)

// readSimple reads the files of a folder in simple mode.
func (r *reader) readSimple(dir string, names, keys []string) (saved []savedConfig) {
	files := map[string]configFile{}
	for _, name := range names {
		extension := filepath.Ext(name)
		i := slices.IndexFunc(simpleFiles, func(f configFile) bool { return f.extension == extension })
		key := strings.TrimSuffix(name, extension)
		switch {
		case i < 0:
			r.report.note("%s: Apprise API does not read it, only <key>.cfg and <key>.yml", name)
		case files[key] == simpleFiles[0]:
			r.report.note("%s: Apprise API does not read it, because there is %s.cfg", name, key)
		default:
			files[key] = simpleFiles[i]
		}
	}
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(files))
	}
	for _, key := range keys {
		f, ok := files[key]
		if !ok {
			r.report.skip("%s: the folder has no such key", keyLabel(key))
			continue
		}
		r.checkLock(key, filepath.Join(dir, key))
		text, err := readRegular(filepath.Join(dir, key+f.extension))
		if err != nil {
			r.report.skip("%s: reading %s: %v", keyLabel(key), key+f.extension, err)
			continue
		}
		saved = append(saved, savedConfig{key, f.format, text})
	}
	return saved
}

// defaultSecretKey is the default of SECRET_KEY in Apprise API. It is public.
const defaultSecretKey = "+reua88v8rs4j!bcfdtinb-f0edxazf!$x_q1g7jtgckxd7gi="

// hashName matches the name of a file in hash mode: the digits of a SHA-224
// after the first two, and the format.
var hashName = lazyregexp.New(`^[0-9a-f]{54}\.(text|yaml)$`)

// readHashed reads the files of a folder in hash mode, for known keys.
func (r *reader) readHashed(dir string, paths []string, secretKey string, keys []string) (saved []savedConfig, err error) {
	secretKey = cmp.Or(secretKey, r.env["SECRET_KEY"], defaultSecretKey)
	unclaimed := map[string]bool{}
	for _, path := range paths {
		unclaimed[path] = true
	}
	all := keys
	if !slices.Contains(keys, r.env.defaultKey()) {
		all = append(slices.Clip(keys), r.env.defaultKey())
	}
	for i, key := range all {
		sum := sha256.Sum224([]byte(secretKey + key))
		name := hex.EncodeToString(sum[:])
		path := filepath.Join(dir, name[:2], name[2:])
		f := slices.IndexFunc(hashFiles, func(f configFile) bool { return unclaimed[path+f.extension] })
		if f < 0 {
			if i < len(keys) { // not the default key
				r.report.skip("%s: the folder has no such key; check the name and --secret-key", keyLabel(key))
			}
			continue
		}
		r.checkLock(key, path)
		text, err := readGzip(path + hashFiles[f].extension)
		for _, f := range hashFiles {
			delete(unclaimed, path+f.extension)
		}
		if err != nil {
			r.report.skip("%s: reading its file: %v", keyLabel(key), err)
			continue
		}
		saved = append(saved, savedConfig{key, hashFiles[f].format, text})
	}
	if len(unclaimed) == len(paths) && len(paths) > 0 {
		return nil, fmt.Errorf("the folder is in hash mode, which hides the names of the keys, "+
			"and none of its %s belongs to a name of --key; give the names with --key, "+
			"and SECRET_KEY with --secret-key if the Apprise API has one",
			words.Count(len(paths), "file"))
	}
	for _, path := range slices.Sorted(maps.Keys(unclaimed)) {
		r.report.skip("%s: the name of its key is unknown; give it with --key",
			filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
	}
	return saved, nil
}

// openRegular opens a file that is not a folder or pipe.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errs.WithoutPath(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	return f, errs.WithoutPath(err)
}

func readRegular(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return appriseconfig.ReadAll(f)
}

func readGzip(path string) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	text, err := appriseconfig.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	return text, nil
}

// checkLock lists the login of a key. path is the path of the key's file without the extension.
func (r *reader) checkLock(key, path string) {
	lock := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock")
	if !r.locked {
		return // an Apprise API without APPRISE_AUTH_REQUIRED ignores it
	}
	if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
		r.report.skip("%s: its own login, because the folder has only a hash of it; add a user to basic_auth, "+
			"who can use every key, or replace basic_auth by a token for each key", keyLabel(key))
	}
}

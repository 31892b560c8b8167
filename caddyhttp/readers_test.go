package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// The secrets of the tests.
const (
	opsToken  = "0psT0ken-0psT0ken"
	opsToken2 = "0psT0ken2-0psT0ken2"
	opsReader = "0psReader-0psReader"
)

// bearer returns the value of Authorization with a token.
func bearer(token string) string { return "Bearer " + token }

// TestTokenPlaceholders checks that placeholders in tokens are replaced when the
// configuration loads.
func TestTokenPlaceholders(t *testing.T) {
	s := gatewaytest.NewStation(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(opsToken2+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_TEST_TOKEN", opsToken)
	h := newGateway(t, "key ops {\nurl "+s.NotifyURL("/ops")+"\ntoken {env.NOTIFY_TEST_TOKEN} {file."+file+"}\n}", "")
	for token, status := range map[string]int{opsToken: 200, opsToken2: 200, opsToken + "x": 401, "{env.NOTIFY_TEST_TOKEN}": 401} {
		r := httptest.NewRequest(http.MethodPost, "/notify/ops", strings.NewReader("body=x"))
		r.Header.Set("Content-Type", typeForm)
		r.Header.Set("Authorization", bearer(token))
		if got := do(t, h, r); got.status != status {
			t.Errorf("%s: %d %s", token, got.status, got.body)
		}
	}
}

// TestAccessMistakes checks which secrets are refused when the configuration loads, and
// that no error shows one.
func TestAccessMistakes(t *testing.T) {
	t.Setenv("NOTIFY_TEST_SHORT", "short-s3cret")
	t.Setenv("NOTIFY_TEST_EMPTY", "")
	t.Setenv("NOTIFY_TEST_LINES", "s3cret-of-two\ns3cret-of-lines")
	for lines, want := range map[string]string{
		"token short-s3cret":              "openssl rand -hex 16",
		"reader short-s3cret":             "openssl rand -hex 16",
		"token {env.NOTIFY_TEST_SHORT}":   "key ops: token: a secret has fewer than 16 characters",
		"token {env.NOTIFY_TEST_LINES}":   "a space, a line break",
		"token {env.NOTIFY_TEST_EMPTY}":   "{env.NOTIFY_TEST_EMPTY} is empty",
		"token {env.NOTIFY_TEST_UNSET}":   "{env.NOTIFY_TEST_UNSET} has no value",
		`token "s3cret with some spaces"`: "a space, a line break",
		"reader s3cret-s3cret-s3":         "reader: it has no effect",
		"token":                           "token <secret...>",
	} {
		_, err := provision(t, "key ops {\nurl json://h\n"+lines+"\n}", "")
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "s3cret-") || strings.Contains(err.Error(), "-s3cret") {
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
}

// TestReaderOfGlobalKey checks that a reader of a key of the app is refused where no
// site can ask for it.
func TestReaderOfGlobalKey(t *testing.T) {
	const key = "key ops {\nurl json://h\nreader " + opsReader + "\n}"
	if err := newGateway(t, "", key).app.checkReaders(); err == nil || !strings.Contains(err.Error(), "no site has configs") {
		t.Errorf("without configs: %v", err)
	}
	if err := newGateway(t, "", "queue {\npath "+t.TempDir()+"\n}\n"+key).app.checkReaders(); err != nil {
		t.Errorf("with a queue: %v", err) // GET /notify/ops/prometheus/api/v2/alerts asks for it
	}
	h, _ := newConfigGateway(t, t.TempDir(), "", key)
	if err := h.app.checkReaders(); err != nil {
		t.Errorf("with configs: %v", err)
	}
}

// TestAccessIsNotLogged checks that Caddy's debug log, which prints whole modules, and
// the JSON form of keys treat secrets as they should.
func TestAccessIsNotLogged(t *testing.T) {
	k := &Key{URLs: []KeyURL{{URL: "json://h"}}, Tokens: []string{opsToken}, Readers: []string{opsReader}}
	line, err := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()).EncodeEntry(zapcore.Entry{},
		[]zap.Field{zap.Any("key", k), zap.Object("settings", &Settings{Keys: map[string]*Key{"ops": k}})})
	if err != nil || strings.Contains(line.String(), opsToken) ||
		strings.Contains(line.String(), opsReader) || !strings.Contains(line.String(), `"tokens":1`) {
		t.Errorf("%s %v", line.String(), err)
	}
	var back Key
	if err := back.UnmarshalJSON(caddyconfig.JSON(k, nil)); err != nil ||
		!slices.Equal(back.Tokens, k.Tokens) || !slices.Equal(back.Readers, k.Readers) {
		t.Errorf("%+v %v", back, err)
	}
}

const testReader = "reader-of-the-inbox"

// TestInboxRefused checks that an inbox that cannot work is refused when the
// configuration loads, with what to do.
func TestInboxRefused(t *testing.T) {
	t.Parallel()
	const inbox, reader = "inbox 7d\n", "reader " + testReader + "\n"
	queue := "queue {\npath " + t.TempDir() + "\n}\n"
	for _, tt := range []struct{ block, global, want string }{
		{"key k {\n" + inbox + reader + "}", "", "Testfile:3: key k: inbox: messages are kept in the queue, and there is none; add queue"},
		{
			"key k {\n" + inbox + reader + "queue off\n}", queue,
			"Testfile:3: key k: inbox: messages are kept in the queue, which the key does not use; remove queue off",
		},
		{
			"key k {\n" + inbox + "}", queue,
			"Testfile:3: key k: inbox: nobody can read it, because the key has no reader and nobody may manage; add reader",
		},
		{"configs {\nmanage\n" + inbox + "}", "", "Testfile:4: configs: inbox: messages are kept in the queue, and there is none"},
		{"configs {\n" + inbox + "}", queue, "Testfile:3: configs: inbox: nobody can read it, because nobody may manage; add manage"},
		{"key k {\n" + inbox + reader + "default_tag a\n}", queue, "no URL of the key has this tag"},
		{"", queue + "key k {\n" + inbox + "queue off\n}", "key k: inbox: messages are kept in the queue, which the key does not use"},
	} {
		if _, err := provision(t, tt.block, tt.global); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.block, err, tt.want)
		}
	}
	for _, tt := range []struct{ block, global, want string }{
		{"", queue + "key k {\n" + inbox + "}", "nobody can read it, because the key has no reader"},
		{"console {\nmanage open\n}", queue + "key k {\n" + inbox + "}", ""},
		{"", queue + "key k {\n" + inbox + reader + "}", ""},
		{"", queue + "key k {\n" + inbox + reader + "dedupe 1h\n}", ""},
	} {
		h, err := provision(t, tt.block, tt.global)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.app.checkInboxReaders(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.global, err, tt.want)
		}
	}
	h, err := provision(t, "", queue+"key k {\n"+inbox+reader+"}")
	if err != nil {
		t.Fatal(err)
	}
	h.app.gateway.Conf.Sites = nil
	if err := h.app.checkInboxReaders(); err == nil || !strings.Contains(err.Error(), "no site has notify") {
		t.Error(err)
	}
	if _, err := provision(t, `key k {`+"\n"+inbox+reader+"expect nightly every 1h\n}", queue); err != nil {
		t.Errorf("beats of a key with only an inbox: %v", err)
	}
}

package placeholder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolveURL(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from/a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, url, value, want string }{
		{"whole URL", "{env.X}", "json://user:p@ss@host/path?a=b", "json://user:p@ss@host/path?a=b"},
		{"whole URL with a line break", "{env.X}", "json://host\n", "json://host"},
		{"beginning of a URL", "{env.X}/more", "json://host:8080", "json://host:8080/more"},
		{"schema", "{env.X}://host", "jsons", "jsons://host"},
		{"password with structure in it", "json://user:{env.X}@host", "p@ss/word?a#b:c", "json://user:p%40ss%2Fword%3Fa%23b%3Ac@host"},
		{"password that looks like another host", "json://user:{env.X}@host", "x@evil.example/", "json://user:x%40evil.example%2F@host"},
		{"encoded password", "json://user:{env.X}@host", "p%40ss", "json://user:p%40ss@host"},
		{"partly encoded password", "json://user:{env.X}@host", "p%40s@s", "json://user:p%2540s%40s@host"},
		{"percent sign", "json://user:{env.X}@host", "100%", "json://user:100%25@host"},
		{"percent sign in front of a digit", "json://user:{env.X}@host", "5%2", "json://user:5%252@host"},
		{"not ASCII", "json://user:{env.X}@host", "пароль", "json://user:%D0%BF%D0%B0%D1%80%D0%BE%D0%BB%D1%8C@host"},
		{"user", "json://{env.X}:pw@host", "me@example.com", "json://me%40example.com:pw@host"},
		{"host", "json://{env.X}/path", "example.com", "json://example.com/path"},
		{"host and port", "json://{env.X}/path", "example.com:8080", "json://example.com:8080/path"},
		{"IPv6 host", "json://user:pw@{env.X}:80/path", "[2001:db8::1]", "json://user:pw@[2001:db8::1]:80/path"},
		{"token in the place of the host", "tgram://{env.X}/chat", "123456:AbC-dEf_g", "tgram://123456:AbC-dEf_g/chat"},
		{"host with a user in it", "json://{env.X}/path", "a@b", "json://a%40b/path"},
		{"host with a path in it", "json://{env.X}", "host/path", "json://host%2Fpath"},
		{"segment of the path", "json://host/{env.X}/end", "a/b", "json://host/a%2Fb/end"},
		{"list in the path", "tgram://token/{env.X}", "1,-2,@c", "tgram://token/1,-2,%40c"},
		{"parameter", "json://host?+X-Key={env.X}", "a&b=c +d", "json://host?+X-Key=a%26b%3Dc%20%2Bd"},
		{"query has an @", "json://{env.X}?to=a@b", "h", "json://h?to=a@b"},
		{"two placeholders", "json://{env.X}:{env.X}@host", "a:b", "json://a%3Ab:a%3Ab@host"},
		{"file", "json://user:{file." + file + "}@host", "", "json://user:from%2Fa%20file@host"},
		{"escaped brace", `json://host/\{env.X\}`, "x", "json://host/{env.X}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("X", tt.value)
			got, err := ResolveURL(tt.url)
			if err != nil || got != tt.want {
				t.Errorf("%s is %q, %v; want %q", tt.url, got, err, tt.want)
			}
		})
	}
	for _, tt := range []struct{ name, url, value, want string }{
		{"empty", "json://user:{env.X}@host", "", "{env.X} is empty"},
		{"blank", "{env.X}", " \n", "{env.X} is empty"},
		{"schema with a host", "{env.X}://host", "json://secret", "{env.X} stands for the schema"},
		{"not set", "json://{env.NOT_SET_AT_ALL}", "x", "{env.NOT_SET_AT_ALL} has no value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("X", tt.value)
			if _, err := ResolveURL(tt.url); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want an error with %q and without the value", tt.url, err, tt.want)
			}
		})
	}
}

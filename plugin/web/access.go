package web

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"strings"
	"sync"
)

// access lets the reader in who has the printed address.
type access struct {
	mu sync.Mutex
	// token is what the next session is given for; each works once. sessions are the cookies that were given.
	token    string
	sessions map[string]bool
	// next is told the token that replaces a used one.
	next func(token string)
}

func newAccess(next func(string)) *access {
	return &access{token: secret(), sessions: map[string]bool{}, next: next}
}

// secret returns 256 random bits.
func secret() string {
	bytes := make([]byte, 32)
	rand.Read(bytes) // never fails: https://pkg.go.dev/crypto/rand#Read
	return hex.EncodeToString(bytes)
}

// exchange returns a session for the token, "" if it is not the current one.
func (a *access) exchange(token string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) != 1 {
		return ""
	}
	session := secret()
	a.sessions[session] = true
	a.token = secret()
	if a.next != nil {
		a.next(a.token)
	}
	return session
}

func (a *access) known(session string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[session]
}

// cookieName has the port, because browsers send a cookie to all ports of a host.
func cookieName(host string) string {
	_, port, _ := net.SplitHostPort(host)
	return "karpenter-page-" + port
}

// local reports whether the Host of a request is this machine. A page of another site whose name was made to resolve to
// the loopback address has another one.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	switch strings.ToLower(name) {
	case "localhost", "127.0.0.1", "::1", "[::1]":
		return true
	}
	return false
}

// policy is the content security policy.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; " +
	"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// guard checks and hardens every request before the handler has it.
func (a *access) guard(next http.Handler) http.Handler {
	protected := http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !local(r.Host) {
			http.Error(w, "the Host of the request is not this machine", http.StatusMisdirectedRequest)
			return
		}
		protected.ServeHTTP(w, r)
	})
}

// has reports whether a request has a session.
func (a *access) has(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName(r.Host))
	return err == nil && a.known(cookie.Value)
}

// session lets only requests with a session through.
func (a *access) session(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !a.has(r) {
			w.WriteHeader(http.StatusUnauthorized)
			render(w, "entry", entryPage{Title: "Session needed", Failed: true})
			return
		}
		next(w, r)
	}
}

// open gives a session for a token. The script asks with the token of the fragment, a form with the one that was typed
// in.
func (a *access) open(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 4096)
	session := a.exchange(strings.TrimSpace(r.PostFormValue("token")))
	if session == "" {
		w.WriteHeader(http.StatusForbidden)
		render(w, "entry", entryPage{Title: "Token not valid", Failed: true})
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r.Host), Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	http.Redirect(w, r, "/fleet", http.StatusSeeOther)
}

// entryPage is the page without a session.
type entryPage struct {
	Title  string
	Failed bool
}

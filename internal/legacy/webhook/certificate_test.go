package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

var names = []string{"karpenter.kube-system.svc", "karpenter.kube-system.svc.cluster.local"}

// trusts reports whether a client with the bundle trusts the certificate at the given time.
func trusts(t *testing.T, bundle []byte, m material, now time.Time) bool {
	t.Helper()
	pair, err := tls.X509KeyPair(m.certificate, m.key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("no authority in the bundle")
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: names[0], Roots: roots, CurrentTime: now})
	return err == nil
}

func must(t *testing.T, m material, now time.Time) (material, bool) {
	t.Helper()
	next, changed, err := m.renewed(names, now)
	if err != nil {
		t.Fatal(err)
	}
	return next, changed
}

// TestRotation verifies that over ten years of daily checks, the served certificate is always trusted by a client
// with the current bundle, and by one whose bundle is a week old.
func TestRotation(t *testing.T) {
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	m, changed := must(t, material{}, now)
	if !changed {
		t.Fatal("nothing was created")
	}
	bundles := map[int][]byte{0: m.bundle}
	certificates, authorities, longest := 0, 0, 0
	for day := 1; day <= 3650; day++ {
		now = now.Add(24 * time.Hour)
		next, changed := must(t, m, now)
		if changed == (bytes.Equal(next.bundle, m.bundle) && bytes.Equal(next.certificate, m.certificate)) {
			t.Fatalf("day %d: changed is %t", day, changed)
		}
		if !bytes.Equal(next.certificate, m.certificate) {
			certificates++
		}
		if !bytes.Equal(next.authorityKey, m.authorityKey) {
			authorities++
			if !bytes.Equal(next.certificate, m.certificate) {
				t.Fatalf("day %d: a certificate of an authority that is not published yet", day)
			}
		}
		m = next
		bundles[day] = m.bundle
		longest = max(longest, bytes.Count(m.bundle, []byte("BEGIN")))
		for _, of := range []int{day, max(0, day-7)} {
			if !trusts(t, bundles[of], m, now) {
				t.Fatalf("day %d: not trusted with the bundle of day %d", day, of)
			}
		}
	}
	switch {
	case certificates < 50:
		t.Errorf("certificates is %v, want at least 50", certificates)
	case certificates > 70:
		t.Errorf("certificates is %v, want at most 70", certificates)
	case authorities < 4:
		t.Errorf("authorities is %v, want at least 4", authorities)
	case authorities > 6:
		t.Errorf("authorities is %v, want at most 6", authorities)
	case longest > 3:
		t.Errorf("longest is %v, want at most 3", longest)
	}
}

func TestWhatIsBrokenIsMadeAnew(t *testing.T) {
	now := time.Now()
	good, _ := must(t, material{}, now)
	other, _ := must(t, material{}, now)
	for name, broken := range map[string]material{
		"empty":                          {},
		"garbage":                        {[]byte("a"), []byte("b"), []byte("c"), []byte("d")},
		"no authority":                   {nil, good.authorityKey, good.certificate, good.key},
		"key of another authority":       {good.bundle, other.authorityKey, good.certificate, good.key},
		"no key of the authority":        {good.bundle, nil, good.certificate, good.key},
		"no certificate":                 {good.bundle, good.authorityKey, nil, nil},
		"key of another certificate":     {good.bundle, good.authorityKey, good.certificate, other.key},
		"certificate of another bundle":  {good.bundle, good.authorityKey, other.certificate, other.key},
		"a certificate in place of keys": {good.bundle, good.certificate, good.certificate, good.certificate},
	} {
		t.Run(name, func(t *testing.T) {
			m, changed := must(t, broken, now)
			if !changed || !trusts(t, m.bundle, m, now) {
				t.Errorf("changed %t, trusted %t", changed, trusts(t, m.bundle, m, now))
			}
			if _, again := must(t, m, now); again {
				t.Error("not valid until the next check")
			}
		})
	}
	if _, changed := must(t, good, now); changed {
		t.Error("valid material was changed")
	}
	renamed, changed, err := good.renewed([]string{"other.ns.svc"}, now)
	switch {
	case err != nil:
		t.Errorf("another name requires another certificate of the same authority: error %v", err)
	case !changed:
		t.Errorf("another name requires another certificate of the same authority: changed is false")
	case !bytes.Equal(renamed.bundle, good.bundle):
		t.Errorf("another name requires another certificate of the same authority: renamed.bundle is %v, want %v", renamed.bundle, good.bundle)
	case bytes.Equal(renamed.certificate, good.certificate):
		t.Errorf("another name requires another certificate of the same authority: bytes.Equal(renamed.certificate, good.certificate) is true")
	}
	if m, _ := must(t, good, now.Add(20*365*24*time.Hour)); bytes.Contains(m.bundle, bytes.TrimSpace(good.bundle)) {
		t.Error("an authority that has ended is in the bundle")
	}
}

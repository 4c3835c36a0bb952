package discovery

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

func TestMinorVersion(t *testing.T) {
	for text, want := range map[string]string{
		"1.33": "1.33", "v1.33.4-eks-1234567": "1.33", "1.36+": "1.36", "v1.36.0": "1.36", "": "", "2.1": "", "1.x": "",
		"one.33": "", "1.33x": "",
	} {
		if got, err := minorVersion(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

var simCluster = awssim.Options{Cluster: awssim.Cluster{Endpoint: "https://api.example", CA: "PEM", Version: "1.35"}}

func TestCluster(t *testing.T) {
	pem := base64.StdEncoding.EncodeToString([]byte("PEM"))
	dns := func(context.Context) (string, error) { return "10.100.0.10", nil }
	server := func(context.Context) (string, error) { return "v1.34.2-eks-1", nil }
	for _, test := range []struct {
		name       string
		sim        awssim.Options
		kubernetes Kubernetes
		want       Facts
	}{
		{"from EKS", simCluster, Kubernetes{FromEKS: true, Version: server, DNS: dns},
			Facts{Name: "sandbox", Version: "1.35", Endpoint: "https://api.example", CABundle: pem, ServiceCIDR: "10.100.0.0/16",
				DNS: "10.100.0.10"}},
		{"version of the API server", simCluster, Kubernetes{Version: server},
			Facts{Name: "sandbox", Version: "1.34", Endpoint: "https://api.example", CABundle: pem, ServiceCIDR: "10.100.0.0/16"}},
		{"settings win", simCluster, Kubernetes{Endpoint: "https://mine", CABundle: "bWluZQ=="},
			Facts{Name: "sandbox", Version: "1.35", Endpoint: "https://mine", CABundle: "bWluZQ==", ServiceCIDR: "10.100.0.0/16"}},
		{"not an EKS cluster", awssim.Options{Cluster: awssim.Cluster{Name: "another"}},
			Kubernetes{Endpoint: "https://mine", CABundle: "bWluZQ==", Version: server},
			Facts{Name: "sandbox", Version: "1.34", Endpoint: "https://mine", CABundle: "bWluZQ=="}},
		{"settings of the VPC CNI", simCluster,
			Kubernetes{FromEKS: true, CNI: func(context.Context) (CNI, error) { return CNI{PrefixDelegation: true}, nil }},
			Facts{Name: "sandbox", Version: "1.35", Endpoint: "https://api.example", CABundle: pem, ServiceCIDR: "10.100.0.0/16",
				CNI: CNI{PrefixDelegation: true}}},
		{"IPv6", awssim.Options{Cluster: awssim.Cluster{CA: "PEM", Endpoint: "https://e", ServiceCIDR: "fd12::/108"}}, Kubernetes{},
			Facts{Name: "sandbox", Version: "1.36", Endpoint: "https://e", CABundle: pem, ServiceCIDR: "fd12::/108", IPv6: true}},
		{"IPv6, not an EKS cluster", awssim.Options{Cluster: awssim.Cluster{Name: "another"}},
			Kubernetes{Endpoint: "https://mine", CABundle: "bWluZQ==", Version: server,
				DNS: func(context.Context) (string, error) { return "fd12::a", nil }},
			Facts{Name: "sandbox", Version: "1.34", Endpoint: "https://mine", CABundle: "bWluZQ==", DNS: "fd12::a", IPv6: true}},
	} {
		within(t, test.sim, test.kubernetes, func(ctx context.Context, w *world) {
			got, err := w.Cluster.Facts(ctx)
			w.Must(err)
			if test.sim.Cluster.Name == "" { // EKS knows it
				test.want.ARN = "arn:aws:eks:us-east-1:111122223333:cluster/sandbox"
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
		})
	}
}

// TestClusterChanges checks that an upgrade is detected within five minutes, and that the last facts are used during an
// outage.
func TestClusterChanges(t *testing.T) {
	within(t, simCluster, Kubernetes{FromEKS: true}, func(ctx context.Context, w *world) {
		version := func() string {
			facts, err := w.Cluster.Facts(ctx)
			w.Must(err)
			return facts.Version
		}
		if v := version(); v != "1.35" {
			t.Fatalf("version %s, want 1.35", v)
		}
		w.AWS.SetCluster(awssim.Cluster{Version: "1.36"})
		if v := version(); v != "1.35" {
			t.Errorf("version %s immediately, want 1.35", v)
		}
		w.Pass(5 * time.Minute)
		if v := version(); v != "1.36" {
			t.Errorf("version %s after five minutes, want 1.36", v)
		}
		_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultFail, Service: "eks"})
		w.Must(err)
		w.Pass(5 * time.Minute)
		if facts, err := w.Cluster.Facts(ctx); KindOf(err) != Transient || facts.Version != "1.36" {
			t.Errorf("while EKS is down: %+v, %v; want the last facts and the error", facts, err)
		}
	})
}

// TestStalledCluster checks that while EKS accepts calls and never responds, one caller at a time waits for it
// occasionally, and all others use the last facts.
func TestStalledCluster(t *testing.T) {
	within(t, simCluster, Kubernetes{FromEKS: true}, func(ctx context.Context, w *world) {
		_, err := w.Cluster.Facts(ctx)
		w.Must(err)
		w.Pass(5 * time.Minute)
		_, err = w.AWS.Inject(awssim.Fault{Kind: awssim.FaultFreeze, Service: "eks"})
		w.Must(err)
		elapsed := func() (waited time.Duration, failed error) {
			began := time.Now()
			facts, err := w.Cluster.Facts(ctx)
			if facts.Version != "1.35" {
				t.Errorf("version %q, want the last one known", facts.Version)
			}
			return time.Since(began), err
		}
		asked := make(chan error)
		go func() {
			waited, err := elapsed()
			if waited < 10*time.Second || KindOf(err) != Transient {
				t.Errorf("the caller that reads waited %v and got %v", waited, err)
			}
			asked <- err
		}()
		w.Pass(time.Second)
		for range 1000 {
			if waited, err := elapsed(); waited > 0 || err != nil {
				t.Fatalf("another caller waited %v during the read, and got %v", waited, err)
			}
		}
		<-asked
		if waited, err := elapsed(); waited > 0 || err != nil {
			t.Errorf("a caller after the read waited %v, and got %v", waited, err)
		}
		w.AWS.Clear(0)
		w.AWS.SetCluster(awssim.Cluster{Version: "1.36"})
		w.Pass(unread)
		if facts, err := w.Cluster.Facts(ctx); err != nil || facts.Version != "1.36" {
			t.Errorf("after EKS has recovered: %s, %v", facts.Version, err)
		}
	})
}

// TestUnsupportedVersion checks that an unsupported version is reported once, and used.
func TestUnsupportedVersion(t *testing.T) {
	within(t, simCluster, Kubernetes{FromEKS: true}, func(ctx context.Context, w *world) {
		for _, version := range []string{"1.26", "1.36", "1.38", "1.38", "1.25", "1.30"} {
			w.AWS.SetCluster(awssim.Cluster{Version: version})
			w.Pass(5 * time.Minute)
			facts, err := w.Cluster.Facts(ctx)
			w.Must(err)
			if facts.Version != version {
				t.Errorf("version %s, want %s", facts.Version, version)
			}
		}
		if want := []string{"1.38", "1.25"}; !slices.Equal(w.unsupported, want) {
			t.Errorf("reported %v, want %v", w.unsupported, want)
		}
	})
}

// TestClusterIncomplete checks that the error for a missing fact names the setting that supplies it.
func TestClusterIncomplete(t *testing.T) {
	down := func(context.Context) (string, error) { return "", errors.New("no route") }
	for _, test := range []struct {
		name       string
		sim        awssim.Options
		kubernetes Kubernetes
		want       string
	}{
		{"unknown cluster", awssim.Options{Cluster: awssim.Cluster{Name: "another"}}, Kubernetes{}, "EKS DescribeCluster"},
		{"no authority", awssim.Options{}, Kubernetes{}, "--cluster-ca-bundle"},
		{"authority not base64", awssim.Options{}, Kubernetes{CABundle: "-----BEGIN"}, "--cluster-ca-bundle"},
		{"API server down", simCluster, Kubernetes{Version: down}, "reading the version of the API server: no route"},
		{"service not readable", simCluster, Kubernetes{DNS: down}, "reading the address of kube-dns: no route"},
	} {
		within(t, test.sim, test.kubernetes, func(ctx context.Context, w *world) {
			if _, err := w.Cluster.Facts(ctx); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: %v, want %q in it", test.name, err, test.want)
			}
		})
	}
}

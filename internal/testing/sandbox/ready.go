package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// probe is a health check: a GET request that returns 200.
type probe struct {
	url       string
	authority string // file of the CA that signed the server's certificate
	client    string // path of certificate and key without .crt and .key; may be empty
}

// pollEvery is short because a check is cheap and a caller waits for it.
const pollEvery = 50 * time.Millisecond

// NotReadyError reports that something did not become ready in time.
type NotReadyError struct {
	What string
	Log  string // path; empty if it is not a component
	Last error  // result of the last check
}

func (e *NotReadyError) Error() string {
	text := fmt.Sprintf("%s is not ready in time: %v", e.What, e.Last)
	if e.Log != "" {
		text += "; its log is " + e.Log
	}
	return text
}

func (e *NotReadyError) Unwrap() error { return e.Last }

// until calls check until it returns nil or the context ends. A deadline gives a *NotReadyError, the death of a
// component a *DeadError. Other cancellations return their cause.
func until(ctx context.Context, what string, check func(context.Context) error) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			var dead *DeadError
			switch cause := context.Cause(ctx); {
			case errors.As(cause, &dead):
				return cause
			case errors.Is(cause, context.DeadlineExceeded):
				return &NotReadyError{What: what, Last: err}
			default:
				return fmt.Errorf("waiting for %s: %w", what, cause)
			}
		case <-ticker.C:
		}
	}
}

func (p probe) http() (*http.Client, error) {
	if p.authority == "" {
		return &http.Client{Timeout: 2 * time.Second}, nil
	}
	pem, err := os.ReadFile(p.authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	settings := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if p.client != "" {
		pair, err := tls.LoadX509KeyPair(p.client+".crt", p.client+".key")
		if err != nil {
			return nil, err
		}
		settings.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true}}, nil
}

func (p probe) check(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s answers %s: %s", p.url, response.Status, strings.Join(strings.Fields(string(body)), " "))
	}
	return nil
}

// defaultsExist reports whether the cluster has the default namespace and, if serviceAccount is set, the default
// service account in it (which only the controller manager creates).
func defaultsExist(ctx context.Context, config *rest.Config, serviceAccount bool) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceDefault, metav1.GetOptions{}); err != nil {
		return err
	}
	if _, err := client.CoreV1().Namespaces().Get(ctx, corev1.NamespaceNodeLease, metav1.GetOptions{}); err != nil {
		return err
	}
	if !serviceAccount {
		return nil
	}
	_, err = client.CoreV1().ServiceAccounts(corev1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errors.New("the default service account is not there yet")
	}
	return err
}

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/karpenter-go/karpenter/internal/testing/fakeapi"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// registry accesses what kube-apiserver stores in etcd: objects under /registry/. They are read and written through
// etcd's own HTTP interface (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/), bypassing kube-apiserver. This
// way, 50,000 pods take seconds, and keep their UID, status and managed fields.
type registry struct {
	url    string
	client *http.Client
}

// openRegistry connects to the etcd of a sandbox.
func openRegistry(s *sandbox.Sandbox) (*registry, error) {
	components := s.Status().Components
	i := slices.IndexFunc(components, func(c sandbox.ComponentStatus) bool { return c.Name == "etcd" })
	if i < 0 {
		return nil, fmt.Errorf("opening the registry: no etcd runs")
	}
	keys := filepath.Join(filepath.Dir(s.Kubeconfig()), "pki")
	authority, err := os.ReadFile(filepath.Join(keys, "etcd-ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(keys, "etcd-client.crt"), filepath.Join(keys, "etcd-client.key"))
	if err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	settings := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return &registry{
		url:    "https://127.0.0.1:" + strconv.Itoa(components[i].Port),
		client: &http.Client{Transport: &http.Transport{TLSClientConfig: settings}},
	}, nil
}

// read returns the objects whose keys have the prefix.
func (r *registry) read(ctx context.Context, prefix string) ([]fakeapi.Stored, error) {
	end := []byte(prefix)
	end[len(end)-1]++
	var answer struct {
		Kvs []fakeapi.Stored `json:"kvs"`
	}
	err := r.call(ctx, "/v3/kv/range", map[string][]byte{"key": []byte(prefix), "range_end": end}, &answer)
	return answer.Kvs, err
}

// write stores the objects, several at a time.
func (r *registry) write(ctx context.Context, objects <-chan fakeapi.Stored) error {
	const writers = 4
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for batch := range batches(ctx, objects) {
				if err := r.put(ctx, batch); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// batches groups objects, as many as etcd allows in one request: 128, and 1.5 MiB.
func batches(ctx context.Context, objects <-chan fakeapi.Stored) func(yield func([]fakeapi.Stored) bool) {
	const most, bytes = 64, 512 << 10
	return func(yield func([]fakeapi.Stored) bool) {
		var batch []fakeapi.Stored
		size := 0
		for {
			select {
			case <-ctx.Done():
				return
			case object, more := <-objects:
				if more {
					batch, size = append(batch, object), size+len(object.Key)+len(object.Value)
				}
				if len(batch) > 0 && (!more || len(batch) == most || size > bytes) {
					if !yield(batch) {
						return
					}
					batch, size = nil, 0
				}
				if !more {
					return
				}
			}
		}
	}
}

func (r *registry) put(ctx context.Context, batch []fakeapi.Stored) error {
	type request struct {
		Put fakeapi.Stored `json:"requestPut"`
	}
	body := struct {
		Success []request `json:"success"`
	}{}
	for _, object := range batch {
		body.Success = append(body.Success, request{object})
	}
	return r.call(ctx, "/v3/kv/txn", body, &struct{}{})
}

func (r *registry) call(ctx context.Context, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s to %s: %.300s", response.Status, path, content)
	}
	return json.Unmarshal(content, answer)
}

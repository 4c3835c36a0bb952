package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// platforms have executables of the control plane in the releases, and are those that the project is built for.
var platforms = []string{"linux-amd64", "linux-arm64"}

// Pin reads the checksums of a release of Kubernetes such as v1.36.3 and of etcd from where they are published (or from the
// mirror), and returns sums.txt with them, in place of those of the same minor version of Kubernetes.
func (c *Client) Pin(ctx context.Context, kubernetes, etcd string) (string, error) {
	return c.pin(ctx, sums, kubernetes, etcd)
}

func (c *Client) pin(ctx context.Context, text, kubernetes, etcd string) (string, error) {
	var added []string
	for _, platform := range platforms {
		archive := fmt.Sprintf("%s/kubernetes-server-%s.tar.gz", kubernetes, platform)
		sum, err := c.text(ctx, Archive{Path: archive + ".sha512", location: kubernetesLocation})
		if err != nil {
			return "", err
		}
		added = append(added, strings.TrimSpace(sum)+"  "+archive)
	}
	published, err := c.text(ctx, Archive{Path: etcd + "/SHA256SUMS", location: etcdLocation})
	if err != nil {
		return "", err
	}
	for _, platform := range platforms {
		name := fmt.Sprintf("etcd-%s-%s.tar.gz", etcd, platform)
		for row := range strings.Lines(published) {
			if fields := strings.Fields(row); len(fields) == 2 && fields[1] == name {
				added = append(added, fields[0]+"  "+etcd+"/"+name)
			}
		}
	}
	if len(added) != 2*len(platforms) {
		return "", fmt.Errorf("SHA256SUMS of etcd %s: want a checksum for each of %s", etcd, strings.Join(platforms, ", "))
	}
	minor := kubernetes[:strings.LastIndexByte(kubernetes, '.')+1]
	for row := range strings.Lines(text) {
		row = strings.TrimSuffix(row, "\n")
		replaced := strings.Contains(row, "  "+minor) && strings.Contains(row, "/kubernetes-server-")
		if !replaced && !slices.Contains(added, row) {
			added = append(added, row)
		}
	}
	merged := strings.Join(added, "\n") + "\n"
	_, err = parse(merged)
	return merged, err
}

// text returns a small file of a release.
func (c *Client) text(ctx context.Context, a Archive) (string, error) {
	ctx, _, end := limit(ctx, c.stall)
	defer end()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Location(a), nil)
	if err != nil {
		return "", err
	}
	answer, err := (&http.Client{Transport: transport()}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", c.Location(a), err)
	}
	return string(content), nil
}

package discovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// Image is a machine image that a selector matched, with the machines that it is for.
type Image struct {
	ID         string
	Name       string
	Created    time.Time
	Deprecated bool
	// Requirements are requirements on the labels of machines, sorted by the length of their keys.
	Requirements []corev1.NodeSelectorRequirement
}

// Images finds machine images.
type Images struct {
	api        EC2API
	parameters *parameters
	calls      *Caller
	opts       Options
	found      *cache[imageKey, []Image]
}

// imageKey is the cache key for images: an alias refers to different images for different versions of Kubernetes.
type imageKey struct {
	revision
	kubernetes string
}

func newImages(api EC2API, parameters *parameters, calls *Caller, opts Options) *Images {
	return &Images{api: api, parameters: parameters, calls: calls, opts: opts, found: newCache[imageKey, []Image](opts.Now)}
}

// Find returns the images that the class selects, one for each kind of machine, in the order in which they are tried:
// newest first, then by ID. kubernetes is the cluster's version, such as 1.33, on which an alias depends. Errors:
// *UnsupportedAliasError, *CallError.
func (i *Images) Find(ctx context.Context, class *awsv1.EC2NodeClass, kubernetes string) ([]Image, error) {
	key := imageKey{revisionOf(class), kubernetes}
	found, err := i.found.value(ctx, key, i.opts.Lifetimes.Images, func(ctx context.Context) ([]Image, error) {
		if family, version, ok := class.Alias(); ok {
			return i.ofAlias(ctx, family, version, kubernetes)
		}
		return i.ofTerms(ctx, class.Spec.AMISelectorTerms)
	})
	if err != nil {
		return nil, fmt.Errorf("finding the images of EC2NodeClass %q: %w", class.Name, err)
	}
	return slices.Clone(found), nil
}

// Refresh drops the cached images of an alias that are in use and that their owner has deprecated: AWS does so some
// time after a newer release. It is called every 30 minutes. Without it, a release is detected when the lifetime of
// the parameters has passed.
func (i *Images) Refresh(ctx context.Context) error {
	ids := map[string]bool{}
	i.parameters.read.forget(func(name, image string) bool {
		if moves(name) {
			ids[image] = true
		}
		return false
	})
	described, err := i.describe(ctx, mentioned("image-id", slices.Collect(maps.Keys(ids))))
	if err != nil {
		return fmt.Errorf("finding deprecated images: %w", err)
	}
	old := maps.Clone(ids)
	for _, d := range described {
		if !d.deprecated {
			delete(old, d.id)
		}
	}
	i.parameters.forgetMoving(old)
	return nil
}

// Forget drops all cached images, after a release that is known to have happened.
func (i *Images) Forget() {
	i.parameters.forgetMoving(nil)
	i.found.forget(func(imageKey, []Image) bool { return true })
}

func (i *Images) ofAlias(ctx context.Context, family awsv1.Family, version, kubernetes string) ([]Image, error) {
	releases, err := releasesOf(family, version, kubernetes)
	if err != nil {
		return nil, err
	}
	fits := map[string][][]corev1.NodeSelectorRequirement{}
	for _, r := range releases {
		id, err := i.parameters.value(ctx, r.parameter, i.opts.Lifetimes.Parameters)
		if err != nil {
			return nil, err
		}
		if id != "" {
			fits[id] = append(fits[id], r.fits...)
		}
	}
	described, err := i.describe(ctx, mentioned("image-id", slices.Collect(maps.Keys(fits))))
	if err != nil {
		return nil, err
	}
	var images []Image
	for _, d := range described {
		for _, fit := range fits[d.id] {
			images = append(images, d.image(fit))
		}
	}
	return winners(images), nil
}

func (i *Images) ofTerms(ctx context.Context, terms []awsv1.AMISelectorTerm) ([]Image, error) {
	var fromParameters []string
	for _, term := range terms {
		if term.SSMParameter == "" || term.ID != "" {
			continue
		}
		id, err := i.parameters.value(ctx, term.SSMParameter, i.opts.Lifetimes.CustomParameters)
		if err != nil {
			return nil, err
		}
		fromParameters = append(fromParameters, id)
	}
	described, err := i.describe(ctx, imageQueries(terms, fromParameters))
	if err != nil {
		return nil, err
	}
	images := make([]Image, len(described))
	for k, d := range described {
		images[k] = d.image(nil)
	}
	return winners(images), nil
}

// imageQueries returns one query for all IDs, including those in parameters, and one for each other term. Only
// available images can be launched. Any account can use any image name, so a term with only a name matches images of
// this account and Amazon only.
func imageQueries(terms []awsv1.AMISelectorTerm, fromParameters []string) []query {
	var ids []string
	for _, id := range fromParameters {
		if len(id) > 4 && id[:4] == "ami-" {
			ids = append(ids, id)
		}
	}
	var queries []query
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case term.SSMParameter != "":
		case term.Name != "" || len(term.Tags) > 0:
			q := query{filters: tagFilters(term.Tags)}
			if term.Name != "" {
				q.filters = append([]filter{{"name", []string{term.Name}}}, q.filters...)
				q.owners = []string{"self", "amazon"}
			}
			if term.Owner != "" {
				q.owners = []string{term.Owner}
			}
			queries = append(queries, q)
		}
	}
	return append(mentioned("image-id", ids), queries...)
}

// description holds EC2's data for an image.
type description struct {
	id, name, arch string
	created        time.Time
	deprecated     bool
}

// architectures maps EC2's names to values of kubernetes.io/arch.
var architectures = map[string]string{"x86_64": "amd64", "arm64": "arm64"}

// describe returns the images of all queries, each once, if nodes can have their architecture.
func (i *Images) describe(ctx context.Context, queries []query) ([]description, error) {
	byID := map[string]description{}
	sieve := i.calls.Sieve("EC2", "DescribeImages")
	defer sieve.Close()
	for _, q := range queries {
		q.filters = append(q.filters, filter{"state", []string{"available"}})
		pages := ec2.NewDescribeImagesPaginator(i.api, &ec2.DescribeImagesInput{
			Filters: q.ec2(), Owners: q.owners, IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(1000)})
		for page, err := range call.Pages(ctx, i.calls, "EC2", "DescribeImages", pages) {
			if err != nil {
				return nil, err
			}
			for k := range page.Images {
				d := describedAt(&page.Images[k], i.opts.Now())
				if sieve.Keep(q.asksForImage(&page.Images[k]), d.id) && d.arch != "" {
					byID[d.id] = d
				}
			}
		}
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b description) int { return cmp.Compare(a.id, b.id) }), nil
}

// asksForImage is asksFor for images. The account of "self" is unknown here, so an image of any owner passes for it.
func (q query) asksForImage(read *ec2types.Image) bool {
	owned := len(q.owners) == 0 || slices.Contains(q.owners, "self") ||
		slices.Contains(q.owners, value(read.OwnerId)) || slices.Contains(q.owners, value(read.ImageOwnerAlias))
	return owned && q.asksFor(map[string]string{"image-id": value(read.ImageId), "name": value(read.Name), "state": string(read.State)},
		read.Tags)
}

func describedAt(read *ec2types.Image, now time.Time) description {
	d := description{id: value(read.ImageId), name: value(read.Name), arch: architectures[string(read.Architecture)]}
	// An invalid date counts as the oldest, and as not deprecated.
	d.created, _ = time.Parse(time.RFC3339, value(read.CreationDate))
	if at, err := time.Parse(time.RFC3339, value(read.DeprecationTime)); err == nil {
		d.deprecated = !at.After(now)
	}
	return d
}

// image returns the image with the machines that it is for, including its architecture.
func (d description) image(fit []corev1.NodeSelectorRequirement) Image {
	requirements := append([]corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, d.arch)}, fit...)
	slices.SortFunc(requirements, func(a, b corev1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	return Image{ID: d.id, Name: d.name, Created: d.created, Deprecated: d.deprecated, Requirements: requirements}
}

// winners keeps one image for each kind of machine. It prefers images that are not deprecated, then the newest, then
// the greatest name. The result is in the order of the status: newest first, then by ID.
func winners(images []Image) []Image {
	best := map[string]Image{}
	for _, image := range images {
		kind := fmt.Sprint(image.Requirements)
		if other, ok := best[kind]; !ok || image.beats(&other) {
			best[kind] = image
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b Image) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID), cmp.Compare(fmt.Sprint(a.Requirements), fmt.Sprint(b.Requirements)))
	})
}

func (i *Image) beats(other *Image) bool {
	if i.Deprecated != other.Deprecated {
		return other.Deprecated
	}
	return cmp.Or(i.Created.Compare(other.Created), cmp.Compare(i.Name, other.Name), cmp.Compare(i.ID, other.ID)) > 0
}

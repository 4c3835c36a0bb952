package discovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/mitchellh/hashstructure/v2"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// RoleNotFoundError means that the role of a class does not exist.
type RoleNotFoundError struct {
	Role string
}

func (e *RoleNotFoundError) Error() string {
	return fmt.Sprintf("spec.role: the IAM role %q does not exist in this account; create it, or specify another", e.Role)
}

// Profiles creates and deletes the instance profiles that give machines a role. A profile's name is derived from the
// cluster, the class and the role, so that creating it again after a crash, or in two processes at once, results in one
// profile. If the role of a class changes, the class gets another profile, and the old one is deleted when it is
// unused.
type Profiles struct {
	api   IAMAPI
	calls *Caller
	opts  Options
	made  *cache[profileKey, string]
	// missing holds the roles that do not exist according to IAM.
	missing *cache[string, struct{}]

	mu sync.Mutex
	// idle is when a profile was first seen unused, by name.
	idle map[string]time.Time
}

type profileKey struct{ uid, role string }

func newProfiles(api IAMAPI, calls *Caller, opts Options) *Profiles {
	return &Profiles{api: api, calls: calls, opts: opts, made: newCache[profileKey, string](opts.Now),
		missing: newCache[string, struct{}](opts.Now), idle: map[string]time.Time{}}
}

// Ensure returns the name of the profile for launches: the class's own, or one that is created for its role. A profile
// that is already in the status is kept as long as it has the role, whatever created it. EC2 may not know a new profile
// for some seconds. Errors: *RoleNotFoundError, *CallError.
func (p *Profiles) Ensure(ctx context.Context, class *awsv1.EC2NodeClass) (string, error) {
	if class.Spec.InstanceProfile != nil {
		return *class.Spec.InstanceProfile, nil
	}
	role := roleName(class.Spec.Role)
	if _, gone := p.missing.kept(role); gone {
		return "", &RoleNotFoundError{class.Spec.Role}
	}
	name, err := p.made.value(ctx, profileKey{string(class.UID), role}, p.opts.Lifetimes.Profiles, func(ctx context.Context) (string, error) {
		return p.ensure(ctx, class, role)
	})
	if err != nil {
		return "", fmt.Errorf("creating the instance profile of EC2NodeClass %q: %w", class.Name, err)
	}
	return name, nil
}

// Forget drops the cached result for the class's profile. It is called when EC2 reports that the profile does not
// exist.
func (p *Profiles) Forget(class *awsv1.EC2NodeClass) {
	p.made.forget(func(key profileKey, _ string) bool { return key.uid == string(class.UID) })
}

func (p *Profiles) ensure(ctx context.Context, class *awsv1.EC2NodeClass, role string) (string, error) {
	name := p.nameFor(class, role)
	if old := class.Status.InstanceProfile; old != "" && old != name {
		found, err := p.read(ctx, old)
		if err != nil {
			return "", err
		}
		if found != nil && slices.Contains(rolesOf(found), role) {
			return old, nil
		}
	}
	found, err := p.read(ctx, name)
	if err != nil {
		return "", err
	}
	if found == nil {
		if err := p.create(ctx, class, name); err != nil {
			return "", err
		}
	}
	return name, p.giveRole(ctx, name, role, found)
}

// giveRole makes the role the profile's only one.
func (p *Profiles) giveRole(ctx context.Context, name, role string, found *iamtypes.InstanceProfile) error {
	for _, other := range rolesOf(found) {
		if other == role {
			return nil
		}
		if err := p.removeRole(ctx, name, other); err != nil {
			return err
		}
	}
	_, err := Do(ctx, p.calls, "IAM", "AddRoleToInstanceProfile", func(ctx context.Context) (*iam.AddRoleToInstanceProfileOutput, error) {
		return p.api.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: &role})
	})
	var call *CallError
	switch {
	case !errors.As(err, &call):
		return err
	case call.Code == "LimitExceeded":
		// A profile has at most one role, and IAM's reads may be stale: it has a role that was not shown. The role is
		// assumed to be the right one, unless a later read shows another.
		return nil
	case call.Kind == NotFound && strings.Contains(strings.ToLower(err.Error()), "role with name"):
		p.missing.keep(role, struct{}{}, p.opts.Lifetimes.MissingRole)
		return &RoleNotFoundError{role}
	}
	return err
}

func (p *Profiles) create(ctx context.Context, class *awsv1.EC2NodeClass, name string) error {
	path := p.path() + string(class.UID) + "/"
	_, err := Do(ctx, p.calls, "IAM", "CreateInstanceProfile", func(ctx context.Context) (*iam.CreateInstanceProfileOutput, error) {
		return p.api.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path, Tags: p.tagsOf(class)})
	})
	var call *CallError
	if errors.As(err, &call) && call.Code == "EntityAlreadyExists" {
		return nil
	}
	return err
}

// read returns the profile, or nil if it does not exist.
func (p *Profiles) read(ctx context.Context, name string) (*iamtypes.InstanceProfile, error) {
	out, err := Do(ctx, p.calls, "IAM", "GetInstanceProfile", func(ctx context.Context) (*iam.GetInstanceProfileOutput, error) {
		return p.api.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	})
	if KindOf(err) == NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.InstanceProfile, nil
}

func (p *Profiles) removeRole(ctx context.Context, name, role string) error {
	_, err := Do(ctx, p.calls, "IAM", "RemoveRoleFromInstanceProfile",
		func(ctx context.Context) (*iam.RemoveRoleFromInstanceProfileOutput, error) {
			return p.api.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: &name, RoleName: &role})
		})
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// delete deletes a profile with its roles. It need not exist.
func (p *Profiles) delete(ctx context.Context, profile *iamtypes.InstanceProfile) error {
	name := value(profile.InstanceProfileName)
	for _, role := range rolesOf(profile) {
		if err := p.removeRole(ctx, name, role); err != nil {
			return err
		}
	}
	_, err := Do(ctx, p.calls, "IAM", "DeleteInstanceProfile", func(ctx context.Context) (*iam.DeleteInstanceProfileOutput, error) {
		return p.api.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	})
	p.made.forget(func(_ profileKey, made string) bool { return made == name })
	if KindOf(err) == NotFound {
		return nil
	}
	return err
}

// list returns all profiles with the path prefix. It checks the path of each, because the caller deletes them.
func (p *Profiles) list(ctx context.Context, prefix string) ([]iamtypes.InstanceProfile, error) {
	sieve := p.calls.Sieve("IAM", "ListInstanceProfiles")
	defer sieve.Close()
	var found []iamtypes.InstanceProfile
	pages := iam.NewListInstanceProfilesPaginator(p.api, &iam.ListInstanceProfilesInput{PathPrefix: aws.String(prefix)})
	for page, err := range call.Pages(ctx, p.calls, "IAM", "ListInstanceProfiles", pages) {
		if err != nil {
			return nil, err
		}
		for _, profile := range page.InstanceProfiles {
			if sieve.Keep(strings.HasPrefix(value(profile.Path), prefix), value(profile.InstanceProfileName)) {
				found = append(found, profile)
			}
		}
	}
	return found, nil
}

// Remove deletes all profiles that were created for the class, and the one that Karpenter before 1.7 created for a
// class of this name. Errors: *CallError.
func (p *Profiles) Remove(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if err := p.remove(ctx, class); err != nil {
		return fmt.Errorf("deleting the instance profiles of EC2NodeClass %q: %w", class.Name, err)
	}
	return nil
}

func (p *Profiles) remove(ctx context.Context, class *awsv1.EC2NodeClass) error {
	profiles, err := p.list(ctx, p.path()+string(class.UID)+"/")
	if err != nil {
		return err
	}
	// Lists may be stale, so the known profiles of the class are also read by name.
	for _, name := range []string{p.nameFor(class, roleName(class.Spec.Role)), class.Status.InstanceProfile, p.legacyName(class.Name)} {
		if !profileName.MatchString(name) || class.Spec.Role == "" {
			continue
		}
		found, err := p.read(ctx, name)
		if err != nil {
			return err
		}
		if found != nil && p.ours(found, class) {
			profiles = append(profiles, *found)
		}
	}
	for i := range profiles {
		if err := p.delete(ctx, &profiles[i]); err != nil {
			return err
		}
	}
	return nil
}

// Collect deletes profiles of this cluster that this process has seen unused for Lifetimes.UnusedProfiles. inUse has
// the names in the status of classes and on claims. It returns the names of the deleted profiles. Errors: *CallError;
// the remaining profiles are tried the next time.
func (p *Profiles) Collect(ctx context.Context, inUse map[string]bool) ([]string, error) {
	profiles, err := p.list(ctx, p.path())
	if err != nil {
		return nil, fmt.Errorf("finding unused instance profiles: %w", err)
	}
	var deleted []string
	for _, profile := range p.unused(profiles, inUse) {
		if err := p.delete(ctx, profile); err != nil {
			return deleted, fmt.Errorf("deleting the unused instance profile %s: %w", value(profile.InstanceProfileName), err)
		}
		deleted = append(deleted, value(profile.InstanceProfileName))
	}
	return deleted, nil
}

// unused returns the profiles that have been seen unused for long enough.
func (p *Profiles) unused(profiles []iamtypes.InstanceProfile, inUse map[string]bool) []*iamtypes.InstanceProfile {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, idle := p.opts.Now(), map[string]time.Time{}
	var unused []*iamtypes.InstanceProfile
	for i := range profiles {
		name := value(profiles[i].InstanceProfileName)
		if inUse[name] {
			continue
		}
		since, seen := p.idle[name]
		if !seen {
			since = now
		}
		idle[name] = since
		if now.Sub(since) >= p.opts.Lifetimes.UnusedProfiles {
			unused = append(unused, &profiles[i])
		}
	}
	p.idle = idle
	return unused
}

// path returns the path of all profiles of the cluster.
func (p *Profiles) path() string { return "/karpenter/" + p.opts.Region + "/" + p.opts.Cluster + "/" }

// profileName matches the profile names that IAM accepts.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateInstanceProfile.html
var profileName = regexp.MustCompile(`^[\w+=,.@-]{1,128}$`)

// nameFor returns the name of the profile for a class and role: the cluster's name, shortened if necessary, and 20
// hexadecimal digits.
func (p *Profiles) nameFor(class *awsv1.EC2NodeClass, role string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{p.opts.Region, p.opts.Cluster, string(class.UID), role}, "\n")))
	return p.opts.Cluster[:min(len(p.opts.Cluster), 100)] + "_" + hex.EncodeToString(sum[:10])
}

// legacyName returns the name that Karpenter before 1.7 gave the profile of a class.
func (p *Profiles) legacyName(class string) string {
	sum, err := hashstructure.Hash(p.opts.Region+class, hashstructure.FormatV2, nil)
	if err != nil {
		return "" // never happens for a string
	}
	return fmt.Sprintf("%s_%d", p.opts.Cluster, sum)
}

func (p *Profiles) tagsOf(class *awsv1.EC2NodeClass) []iamtypes.Tag {
	tags := class.ResolvedTags("", p.opts.Cluster)
	tags[awsv1.TagClusterPrefix+p.opts.Cluster] = "owned"
	tags[awsv1.TagCluster] = p.opts.Cluster
	tags[awsv1.TagNodeClass] = class.Name
	tags["topology.kubernetes.io/region"] = p.opts.Region
	var list []iamtypes.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, iamtypes.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}

// ours reports whether the profile has the tags of one that was created for the class.
func (p *Profiles) ours(profile *iamtypes.InstanceProfile, class *awsv1.EC2NodeClass) bool {
	tags := map[string]string{}
	for _, tag := range profile.Tags {
		tags[value(tag.Key)] = value(tag.Value)
	}
	return tags[awsv1.TagClusterPrefix+p.opts.Cluster] == "owned" && tags[awsv1.TagNodeClass] == class.Name
}

func rolesOf(profile *iamtypes.InstanceProfile) []string {
	if profile == nil {
		return nil
	}
	var names []string
	for _, role := range profile.Roles {
		names = append(names, value(role.RoleName))
	}
	return names
}

// roleName returns the name of a role that is given with its path, such as team/KarpenterNodeRole, or as an ARN.
func roleName(role string) string { return role[strings.LastIndex(role, "/")+1:] }

package awssim

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// instanceProfile holds at most one role.
type instanceProfile struct {
	name, path, id string
	created        time.Time
	role           *role
	roleAt         time.Time // when the role was added
	tags           map[string]string
}

// role is an IAM role; its path is in the ARN only.
type role struct {
	name, path, id string
	created        time.Time
}

func (c *Cloud) arn(kind, path, name string) string {
	return "arn:aws:iam::" + c.opts.AccountID + ":" + kind + path + name
}

func (c *Cloud) addRoles(now time.Time) {
	for _, name := range append([]string{"KarpenterNodeRole-" + c.opts.Cluster.Name}, c.opts.Roles...) {
		c.roles[name] = &role{name, "/", strings.Replace(c.newID("AROA"), "-", "", 1), now}
	}
	c.roles[spotRole] = &role{spotRole, "/aws-service-role/spot.amazonaws.com/", strings.Replace(c.newID("AROA"), "-", "", 1), now}
}

// spotRole is created in an account with its first spot request.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html
const spotRole = "AWSServiceRoleForEC2Spot"

// RemoveRole deletes a role, and removes it from the profiles that have it.
func (c *Cloud) RemoveRole(name string) {
	c.locked(func(time.Time) {
		delete(c.roles, name)
		for _, p := range c.profiles {
			if p.role != nil && p.role.name == name {
				p.role = nil
			}
		}
	})
}

// AddRole adds a role. path begins and ends with a slash.
func (c *Cloud) AddRole(path, name string) {
	c.locked(func(now time.Time) {
		c.roles[name] = &role{name, path, strings.Replace(c.newID("AROA"), "-", "", 1), now}
	})
}

func iamMethods() map[string]method {
	return map[string]method{
		"GetRole":                       {run: getRole, params: []string{"RoleName"}},
		"GetInstanceProfile":            {run: getInstanceProfile, params: []string{"InstanceProfileName"}},
		"CreateInstanceProfile":         {run: createInstanceProfile, params: []string{"InstanceProfileName", "Path", "Tags"}},
		"DeleteInstanceProfile":         {run: deleteInstanceProfile, params: []string{"InstanceProfileName"}},
		"TagInstanceProfile":            {run: tagInstanceProfile, params: []string{"InstanceProfileName", "Tags"}},
		"AddRoleToInstanceProfile":      {run: addRoleToInstanceProfile, params: []string{"InstanceProfileName", "RoleName"}},
		"RemoveRoleFromInstanceProfile": {run: removeRoleFromInstanceProfile, params: []string{"InstanceProfileName", "RoleName"}},
		"ListInstanceProfiles":          {run: listInstanceProfiles, params: []string{"PathPrefix", "Marker", "MaxItems"}},
	}
}

type xmlTag struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type xmlRole struct {
	Path       string `xml:"Path"`
	RoleName   string `xml:"RoleName"`
	RoleID     string `xml:"RoleId"`
	Arn        string `xml:"Arn"`
	CreateDate string `xml:"CreateDate"`
	Trust      string `xml:"AssumeRolePolicyDocument"`
}

type xmlProfile struct {
	Path       string    `xml:"Path"`
	Name       string    `xml:"InstanceProfileName"`
	ID         string    `xml:"InstanceProfileId"`
	Arn        string    `xml:"Arn"`
	CreateDate string    `xml:"CreateDate"`
	Roles      []xmlRole `xml:"Roles>member,omitempty"`
	Tags       []xmlTag  `xml:"Tags>member,omitempty"`
}

type xmlProfileOut struct {
	InstanceProfile xmlProfile `xml:"InstanceProfile"`
}

func (c *Cloud) xmlRole(r *role) xmlRole {
	return xmlRole{r.path, r.name, r.id, c.arn("role", r.path, r.name), r.created.UTC().Format(time.RFC3339),
		url.QueryEscape(trust[r.path == "/"])}
}

// trust are the policies by which a role is assumed: of roles for instances, and of those of a service.
var trust = map[bool]string{
	true:  `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`,
	false: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"spot.amazonaws.com"},"Action":"sts:AssumeRole"}]}`,
}

func (c *Cloud) xmlProfile(p *instanceProfile, seen time.Time) xmlProfile {
	out := xmlProfile{Path: p.path, Name: p.name, ID: p.id, Arn: c.arn("instance-profile", p.path, p.name),
		CreateDate: p.created.UTC().Format(time.RFC3339)}
	if p.role != nil && !p.roleAt.After(seen) {
		out.Roles = []xmlRole{c.xmlRole(p.role)}
	}
	for _, key := range sortedKeys(p.tags) {
		out.Tags = append(out.Tags, xmlTag{key, p.tags[key]})
	}
	return out
}

func noSuchEntity(format string, args ...any) error {
	return &apiError{"NoSuchEntity", fmt.Sprintf(format, args...), http.StatusNotFound}
}

func (c *Cloud) profileOf(r *request) (*instanceProfile, error) {
	name := r.form.str("InstanceProfileName")
	if p := c.profiles[name]; p != nil {
		return p, nil
	}
	return nil, noSuchEntity("Instance Profile %s cannot be found.", name)
}

func (c *Cloud) roleOf(r *request) (*role, error) {
	name := r.form.str("RoleName")
	if found := c.roles[name]; found != nil {
		return found, nil
	}
	return nil, noSuchEntity("The role with name %s cannot be found.", name)
}

// getRole implements iam:GetRole. https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetRole.html
func getRole(c *Cloud, r *request, _ time.Time) (any, error) {
	found, err := c.roleOf(r)
	if err != nil {
		return nil, err
	}
	return struct {
		Role xmlRole `xml:"Role"`
	}{c.xmlRole(found)}, nil
}

// getInstanceProfile implements iam:GetInstanceProfile. A new profile or its role may not be visible for a while.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_GetInstanceProfile.html
func getInstanceProfile(c *Cloud, r *request, now time.Time) (any, error) {
	seen := c.seenAt(now)
	p, err := c.profileOf(r)
	if err != nil {
		return nil, err
	}
	if p.created.After(seen) {
		return nil, noSuchEntity("Instance Profile %s cannot be found.", p.name)
	}
	return xmlProfileOut{c.xmlProfile(p, seen)}, nil
}

// createInstanceProfile implements iam:CreateInstanceProfile.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreateInstanceProfile.html
func createInstanceProfile(c *Cloud, r *request, now time.Time) (any, error) {
	name, path := r.form.str("InstanceProfileName"), r.form.str("Path")
	defaultTo(&path, "/")
	valid := func(s, extra string) bool {
		return !strings.ContainsFunc(s, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(extra, r))
		})
	}
	switch {
	case name == "" || len(name) > 128 || !valid(name, "_+=,.@-"):
		return nil, refuse("ValidationError", "The specified value for instanceProfileName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-")
	case len(path) > 512 || !strings.HasPrefix(path, "/") || !strings.HasSuffix(path, "/"):
		return nil, refuse("ValidationError", "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.")
	case c.profiles[name] != nil:
		return nil, &apiError{"EntityAlreadyExists", "Instance Profile " + name + " already exists.", http.StatusConflict}
	}
	tags, err := iamTags(r.form)
	if err != nil {
		return nil, err
	}
	p := &instanceProfile{name: name, path: path, id: strings.Replace(c.newID("AIPA"), "-", "", 1), created: now, tags: tags}
	c.profiles[name] = p
	return xmlProfileOut{c.xmlProfile(p, now)}, nil
}

func iamTags(form *node) (map[string]string, error) {
	tags := map[string]string{}
	for _, item := range form.items("Tags.member") {
		key := item.str("Key")
		if key == "" || len(key) > 128 || strings.HasPrefix(strings.ToLower(key), "aws:") {
			return nil, &apiError{"InvalidInput", "Tag key " + key + " is invalid", http.StatusBadRequest}
		}
		tags[key] = item.str("Value")
	}
	if len(tags) > 50 {
		return nil, &apiError{"LimitExceeded", "The number of tags has reached the maximum limit.", http.StatusConflict}
	}
	return tags, nil
}

// deleteInstanceProfile implements iam:DeleteInstanceProfile; a profile with a role is not deleted.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteInstanceProfile.html
func deleteInstanceProfile(c *Cloud, r *request, _ time.Time) (any, error) {
	p, err := c.profileOf(r)
	if err != nil {
		return nil, err
	}
	if p.role != nil {
		return nil, &apiError{"DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.", http.StatusConflict}
	}
	delete(c.profiles, p.name)
	return nil, nil
}

// tagInstanceProfile implements iam:TagInstanceProfile.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_TagInstanceProfile.html
func tagInstanceProfile(c *Cloud, r *request, _ time.Time) (any, error) {
	p, err := c.profileOf(r)
	if err != nil {
		return nil, err
	}
	tags, err := iamTags(r.form)
	for key, value := range tags {
		p.tags[key] = value
	}
	return nil, err
}

// addRoleToInstanceProfile implements iam:AddRoleToInstanceProfile. A profile has at most one role, and a second one is
// an error. https://docs.aws.amazon.com/IAM/latest/APIReference/API_AddRoleToInstanceProfile.html
func addRoleToInstanceProfile(c *Cloud, r *request, now time.Time) (any, error) {
	p, err := c.profileOf(r)
	if err != nil {
		return nil, err
	}
	added, err := c.roleOf(r)
	if err != nil {
		return nil, err
	}
	if p.role != nil {
		return nil, &apiError{"LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1", http.StatusConflict}
	}
	p.role, p.roleAt = added, now
	return nil, nil
}

// removeRoleFromInstanceProfile implements iam:RemoveRoleFromInstanceProfile.
// https://docs.aws.amazon.com/IAM/latest/APIReference/API_RemoveRoleFromInstanceProfile.html
func removeRoleFromInstanceProfile(c *Cloud, r *request, _ time.Time) (any, error) {
	p, err := c.profileOf(r)
	if err != nil {
		return nil, err
	}
	if p.role == nil || p.role.name != r.form.str("RoleName") {
		return nil, noSuchEntity("The role with name %s cannot be found.", r.form.str("RoleName"))
	}
	p.role = nil
	return nil, nil
}

// listInstanceProfiles implements iam:ListInstanceProfiles, with a hundred per page unless MaxItems is less. The list
// has no tags. https://docs.aws.amazon.com/IAM/latest/APIReference/API_ListInstanceProfiles.html
func listInstanceProfiles(c *Cloud, r *request, now time.Time) (any, error) {
	seen := c.seenAt(now)
	size, err := r.form.integer("MaxItems", 100)
	if err != nil || size < 1 || size > 1000 {
		return nil, refuse("ValidationError", "Value at 'maxItems' must be 1 to 1000")
	}
	if c.opts.PageSize > 0 {
		size = min(size, c.opts.PageSize)
	}
	var out struct {
		Profiles    []xmlProfile `xml:"InstanceProfiles>member,omitempty"`
		IsTruncated bool         `xml:"IsTruncated"`
		Marker      string       `xml:"Marker,omitempty"`
	}
	for _, name := range sortedKeys(c.profiles) {
		p := c.profiles[name]
		if !strings.HasPrefix(p.path, r.form.str("PathPrefix")) || p.created.After(seen) || name <= r.form.str("Marker") {
			continue
		}
		if len(out.Profiles) == size {
			out.IsTruncated, out.Marker = true, out.Profiles[size-1].Name
			break
		}
		listed := c.xmlProfile(p, seen)
		listed.Tags = nil
		out.Profiles = append(out.Profiles, listed)
	}
	return out, nil
}

func stsMethods() map[string]method {
	return map[string]method{"GetCallerIdentity": {run: getCallerIdentity}}
}

// getCallerIdentity implements sts:GetCallerIdentity.
// https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
func getCallerIdentity(c *Cloud, r *request, _ time.Time) (any, error) {
	return struct {
		Arn     string `xml:"Arn"`
		UserID  string `xml:"UserId"`
		Account string `xml:"Account"`
	}{"arn:aws:sts::" + c.opts.AccountID + ":assumed-role/controller/session", r.accessKey + ":session", c.opts.AccountID}, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

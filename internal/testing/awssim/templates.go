package awssim

import (
	"encoding/base64"
	"regexp"
	"slices"
	"time"
)

// launchTemplate is a launch template with its one version.
type launchTemplate struct {
	id, name string
	created  time.Time
	tags     map[string]string
	spec     *launchSpec
	data     *node // the request, for RunInstances
}

type xmlTemplate struct {
	ID      string   `xml:"launchTemplateId"`
	Name    string   `xml:"launchTemplateName"`
	Created string   `xml:"createTime"`
	By      string   `xml:"createdBy"`
	Default int      `xml:"defaultVersionNumber"`
	Latest  int      `xml:"latestVersionNumber"`
	Tags    []ec2Tag `xml:"tagSet>item,omitempty"`
}

type xmlTemplateOut struct {
	Template xmlTemplate `xml:"launchTemplate"`
}

func (c *Cloud) xmlTemplate(t *launchTemplate) xmlTemplate {
	return xmlTemplate{t.id, t.name, iso(t.created), "arn:aws:sts::" + c.opts.AccountID + ":assumed-role/controller/session",
		1, 1, ec2Tags(t.tags)}
}

// templateName matches the names that EC2 accepts: 3 to 128 letters, digits and ( ) . - / _
var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

// createLaunchTemplate implements ec2:CreateLaunchTemplate. Like EC2, it validates what can be validated without a
// launch: numbers, enumerations, the size and encoding of user data. Names and IDs in it are checked at the launch.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateLaunchTemplate.html
func createLaunchTemplate(c *Cloud, r *request, now time.Time) (any, error) {
	name := r.form.str("LaunchTemplateName")
	switch {
	case name == "":
		return nil, refuse("MissingParameter", "The request must contain the parameter LaunchTemplateName")
	case !templateName.MatchString(name):
		return nil, refuse("InvalidLaunchTemplateName.MalformedException",
			"The launch template name '%s' must be 3 to 128 letters, digits and ().-/_", name)
	case len(r.form.str("VersionDescription")) > 255:
		return nil, refuse("InvalidParameterValue", "The version description is longer than 255 characters")
	case !r.form.has("LaunchTemplateData"):
		return nil, refuse("MissingParameter", "The request must contain the parameter LaunchTemplateData")
	}
	return c.once(r, func() (any, error) {
		spec, err := parseSpec(r.form.at("LaunchTemplateData"))
		if err != nil {
			return nil, err
		}
		tags, err := tagSpecs(r.form, "launch-template")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(c.templates, func(t *launchTemplate) bool { return t.name == name }) {
			return nil, refuse("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		if r.form.boolean("DryRun") {
			return nil, dryRunError()
		}
		t := &launchTemplate{c.newID("lt"), name, now, tags["launch-template"], spec, r.form.at("LaunchTemplateData")}
		c.templates = append(c.templates, t)
		return xmlTemplateOut{c.xmlTemplate(t)}, nil
	})
}

// findTemplate returns the template with that ID or name, as of the given time.
func (c *Cloud) findTemplate(id, name string, seen time.Time) (*launchTemplate, error) {
	switch {
	case id != "" && name != "":
		return nil, refuse("InvalidParameterCombination", "The parameters LaunchTemplateId and LaunchTemplateName cannot be used together")
	case id == "" && name == "":
		return nil, refuse("MissingParameter", "Either LaunchTemplateId or LaunchTemplateName must be specified")
	}
	for _, t := range c.templates {
		if (t.id == id || t.name == name) && !t.created.After(seen) {
			return t, nil
		}
	}
	if id != "" {
		return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	return nil, refuse("InvalidLaunchTemplateName.NotFoundException",
		"The specified launch template, with template name %s, does not exist.", name)
}

// version rejects unknown versions; there is one.
func (t *launchTemplate) version(v string) error {
	if !slices.Contains([]string{"", "$Latest", "$Default", "1"}, v) {
		return refuse("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s for template %s.", v, t.id)
	}
	return nil
}

// deleteLaunchTemplate implements ec2:DeleteLaunchTemplate.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteLaunchTemplate.html
func deleteLaunchTemplate(c *Cloud, r *request, now time.Time) (any, error) {
	t, err := c.findTemplate(r.form.str("LaunchTemplateId"), r.form.str("LaunchTemplateName"), now)
	if err != nil {
		return nil, err
	}
	c.templates = slices.DeleteFunc(c.templates, func(o *launchTemplate) bool { return o == t })
	return xmlTemplateOut{c.xmlTemplate(t)}, nil
}

// describeLaunchTemplates implements ec2:DescribeLaunchTemplates, with at most 200 per page.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeLaunchTemplates.html
func describeLaunchTemplates(c *Cloud, r *request, now time.Time) (any, error) {
	seen := c.seenAt(now)
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	visible := slices.DeleteFunc(slices.Clone(c.templates), func(t *launchTemplate) bool { return t.created.After(seen) })
	templates, err := chosen(r.form.strings("LaunchTemplateName"), visible, func(t *launchTemplate) string { return t.name },
		func(name string) error {
			return refuse("InvalidLaunchTemplateName.NotFoundException",
				"At least one of the launch templates specified in the request does not exist: %s", name)
		})
	if err != nil {
		return nil, err
	}
	templates, err = chosen(r.form.strings("LaunchTemplateId"), templates, func(t *launchTemplate) string { return t.id },
		func(id string) error {
			return refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
		})
	if err != nil {
		return nil, err
	}
	templates, err = keep(filters, templates, func(t *launchTemplate) facts { return r.facts(t.tags, func() any { return c.xmlTemplate(t) }) })
	if err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlTemplate `xml:"launchTemplates>item,omitempty"`
		Next  string        `xml:"nextToken,omitempty"`
	}
	templates, out.Next, err = cut(c, r.form, pages{1, 200, 200}, templates, func(t *launchTemplate) string { return t.id })
	for _, t := range templates {
		out.Items = append(out.Items, c.xmlTemplate(t))
	}
	return out, err
}

// mostUserData is EC2's limit for user data, in bytes before base64.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html
const mostUserData = 16384

// decodeUserData decodes user data and checks its size.
func decodeUserData(encoded string) ([]byte, error) {
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(decoded) > mostUserData {
		return nil, refuse("InvalidParameterValue", "User data is limited to %d bytes", mostUserData)
	}
	return decoded, nil
}

// The token is in the fragment, which browsers do not send: it is exchanged for a cookie, and leaves the address.
const token = location.hash.slice(1);
if (token) {
  history.replaceState(null, "", "/");
  const form = document.getElementById("entry");
  form.elements.token.value = token;
  form.submit();
}

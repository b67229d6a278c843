// The OpenID provider `oidc-provider`, and a small API that takes its tokens, on two ports of the
// loopback. argv: the directory node_modules. Prints both URLs as one line of JSON.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const { default: Provider } = await import(
  pathToFileURL(`${process.argv[2]}/oidc-provider/lib/index.js`)
);
const listen = (server) =>
  new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(server.address().port)));
const login = http.createServer();
const api = http.createServer();
const closed = http.createServer();
const issuer = `http://127.0.0.1:${await listen(login)}`;
const own = `http://127.0.0.1:${await listen(api)}`;
const closedUrl = `http://127.0.0.1:${await listen(closed)}`;
const device = 'urn:ietf:params:oauth:grant-type:device_code';
const client = {
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/callback'],
  grant_types: ['authorization_code', 'refresh_token', device],
  response_types: ['code'],
};
const scopes = 'notes:read notes:write';
const provider = new Provider(issuer, {
  clients: [
    { ...client, client_id: 'public-app', token_endpoint_auth_method: 'none' },
    { ...client, client_id: 'secret-app', client_secret: 'cl1ent-canary-4711' },
  ],
  scopes: ['openid', 'offline_access', ...scopes.split(' ')],
  cookies: { keys: ['only-a-test'] },
  rotateRefreshToken: true,
  features: {
    devInteractions: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => own,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, audience) => ({ scope: scopes, accessTokenFormat: 'opaque', audience }),
    },
  },
});
const counts = { token: 0, refused: 0 };
const refused = new Set();
const handle = provider.callback();
login.on('request', (request, response) => {
  if (request.url === '/token') counts.token += 1;
  handle(request, response);
});

const describe = (here) => ({
  openapi: '3.1.0',
  info: { title: 'Notes', version: '1' },
  servers: [{ url: here }],
  security: [{ notes: ['notes:read'] }],
  components: {
    securitySchemes: {
      notes: { type: 'openIdConnect', openIdConnectUrl: `${issuer}/.well-known/openid-configuration` },
    },
  },
  paths: {
    '/notes': {
      get: { operationId: 'listNotes', summary: 'List the notes', responses: { 200: { description: 'ok' } } },
      post: {
        operationId: 'addNote',
        summary: 'Add a note',
        security: [{ notes: ['notes:write'] }],
        requestBody: {
          content: { 'application/json': { schema: { type: 'object', properties: { text: { type: 'string' } } } } },
        },
        responses: { 201: { description: 'made' } },
      },
    },
  },
});
const notes = [];
const answer = (response, status, value, headers = {}) => {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers });
  response.end(JSON.stringify(value));
};
// The API at `own`; the one at `closedUrl` gives its description to those that are logged in.
const serve = (here) => async (request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/openapi.json' && here === own) return answer(response, 200, describe(here));
  if (path === '/.well-known/oauth-protected-resource')
    return answer(response, 200, { resource: here, authorization_servers: [issuer] });
  if (path === '/-/counts') return answer(response, 200, { ...counts, notes });
  const sent = (request.headers.authorization ?? '').replace(/^Bearer /, '');
  if (path === '/-/refuse') {
    // From here on the API refuses the tokens that it has seen, as after their expiry.
    counts.refusing = true;
    return answer(response, 200, {});
  }
  if (counts.refusing && sent) {
    refused.add(counts.last);
    counts.refusing = false;
  }
  const token = sent && !refused.has(sent) && (await provider.AccessToken.find(sent));
  if (!token) {
    counts.refused += 1;
    return answer(response, 401, { error: 'no token' }, {
      'WWW-Authenticate': `Bearer resource_metadata="${here}/.well-known/oauth-protected-resource"`,
    });
  }
  counts.last = sent;
  if (path === '/openapi.json') return answer(response, 200, describe(here));
  if (request.method === 'POST') {
    let body = '';
    for await (const part of request) body += part;
    notes.push({ by: token.accountId, ...JSON.parse(body) });
    return answer(response, 201, notes.at(-1));
  }
  return answer(response, 200, { by: token.accountId, scope: token.scope, notes });
};
api.on('request', serve(own));
closed.on('request', serve(closedUrl));
console.log(JSON.stringify({ issuer, api: own, closed: closedUrl }));
